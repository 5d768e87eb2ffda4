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

// Package upstream holds the file that turns a copy of kubernetes/sample-controller into
// one without its client's rate limiter.
package upstream

import _ "embed"

// Main replaces upstream's main.go. It is not a Go file here, because it belongs to
// upstream's package main.
//
//go:embed main.go.txt
var Main []byte
