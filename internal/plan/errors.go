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

// Errors of writes, and what a Foo's condition says about them.

package plan

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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

// MayBeDone reports whether a write that failed may have been stored: its answer was
// lost, or reports an error inside the API server.
func MayBeDone(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError
}

// IsRefusal reports whether the API server would refuse the same request again, because
// it is invalid, too large, or forbidden by permissions, a quota or a policy.
func IsRefusal(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}
