// SPDX-License-Identifier: Apache-2.0

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
