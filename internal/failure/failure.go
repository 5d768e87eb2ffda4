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

// Package failure judges the errors of calls to the API server: whether the same call
// would fail again, whether it may have been carried out nevertheless, and what to tell
// the user.
package failure

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrCRDMismatch says that statuses can't be stored, because the installed
// CustomResourceDefinition does not belong to this program.
var ErrCRDMismatch = errors.New("the CustomResourceDefinition does not fit this program: " +
	"install the one that belongs to it with 'kubectl apply -f artifacts/crd'")

// IsRefusal reports whether the API server would refuse the same request again, because
// it is invalid, too large, or forbidden by permissions, a quota or a policy.
func IsRefusal(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

// MayBeDone reports whether a write that failed may have been stored: its answer was
// lost, or reports an error inside the API server.
func MayBeDone(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError
}

// Describe quotes the API server's answer. It does not quote other errors: they name
// ports and addresses that differ each time, and a status would, too.
func Describe(err error) string {
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer) && answer.Status().Message != "":
		return answer.Status().Message
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time"
	}
	return "the API server could not be reached"
}
