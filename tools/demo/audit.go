/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The audit log of the cluster.

package main

import (
	"slices"

	"example.com/sample-controller/internal/audit"
)

// nextWrites returns what was changed since the last call. It leaves out what the server refused.
func nextWrites(log *audit.Log) ([]audit.Write, error) {
	writes, err := log.Next()
	return slices.DeleteFunc(writes, func(write audit.Write) bool { return !write.OK() }), err
}
