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

// The error of a write to a child.

package plan

import "fmt"

// WriteError is the error of a write to a child.
type WriteError struct {
	// Doing and Done name the write, such as "creating" and "created".
	Doing, Done string
	// Kind and Name are the child's.
	Kind, Name string
	Err        error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the API server or of the connection to it.
func (e *WriteError) Unwrap() error { return e.Err }
