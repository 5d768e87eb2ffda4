// SPDX-License-Identifier: Apache-2.0

// Package failure classifies the errors of calls to the API server: whether the same call
// would fail again, who refused it, whether it may have been carried out anyway, and what to
// tell the user.
package failure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrCRDMismatch means that statuses can't be stored, because the installed
// CustomResourceDefinition does not match this program.
var ErrCRDMismatch = errors.New("the CustomResourceDefinition does not match this program: " +
	"install the one of the same release with 'kubectl apply --server-side --force-conflicts -f FILE'")

// ErrStale ends a sync that would have acted on a cache without the controller's own last
// write. ErrBehind ends a sync whose live read contradicts the cache: another client has
// written.
var (
	ErrStale  = errors.New("the cache has not seen the controller's last write yet")
	ErrBehind = errors.New("the cache does not show the newest state yet")
)

// CallError is the error of a write to an object, or of a live read.
type CallError struct {
	// Doing and Done name the call, such as "creating" and "created". A read has no Done: what
	// could not be done is the write that it prepares.
	Doing, Done string
	// Kind and Name identify the object.
	Kind, Name string
	Err        error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the API server or of the connection to it.
func (e *CallError) Unwrap() error { return e.Err }

// IsLostRace reports whether the state that a call was based on has changed in the meantime.
// Only the reason shows this, not the code: an admission webhook chooses the code of its
// denial, such as 409 for a host name in use or 404 for a missing reference.
func IsLostRace(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists, metav1.StatusReasonNotFound:
		return true
	}
	return false
}

// IsNotFound reports whether the API server itself says that an object of a resource, or its
// subresource, does not exist. A webhook that responds with this reason means something else.
func IsNotFound(err error, resource string) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.ReasonForError(err) != metav1.StatusReasonNotFound {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Kind == resource
}

// IsRefusal reports whether the API server would refuse the same request again: because it
// is invalid or too large, because of permissions or a quota, or because a policy or a
// webhook denies it, with any 4xx code.
func IsRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || IsLostRace(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	status := answer.Status()
	switch status.Reason {
	case metav1.StatusReasonTooManyRequests, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return false
	case metav1.StatusReasonUnauthorized:
		// Either expired credentials or a policy's denial; only the latter names the object.
		return status.Details != nil && !apierrors.IsUnexpectedServerError(err)
	}
	return status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError
}

// The causes of refusals.
const (
	// Permission means that the controller's account may not make the call or is unknown.
	Permission = "permission"
	Quota      = "quota"
	// Policy means a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy.
	Policy  = "policy"
	Webhook = "webhook"
	// Other includes invalid objects, and causes that this program does not recognize.
	Other = "other"
)

// Causes are all results of CauseOf except "".
var Causes = []string{Permission, Quota, Policy, Webhook, Other}

// CauseOf returns the cause of a refused call, or "" if the error is not a refusal.
//
// RBAC, quotas and most admission plugins respond with the same code and reason, and with
// details that do not distinguish them. So CauseOf reads the beginning of the message. The
// API server writes that part: text that a webhook, a policy or a user can choose follows it.
func CauseOf(err error) string {
	var answer apierrors.APIStatus
	switch {
	case !errors.As(err, &answer):
		return ""
	case !IsRefusal(err):
		if apierrors.IsUnauthorized(err) {
			return Permission
		}
		return ""
	case strings.HasPrefix(answer.Status().Message, "admission webhook "):
		return Webhook // first, because a webhook may also set the details
	case answer.Status().Details != nil:
		return causeIn(answer.Status().Message, answer.Status().Details)
	}
	return Other
}

// How explanations begin that come from the API server's authorizer and its admission plugins
// OwnerReferencesPermissionEnforcement and ResourceQuota.
var explanations = []struct{ begins, cause string }{
	{`User "`, Permission},
	{"cannot set blockOwnerDeletion if ", Permission},
	{"cannot set an ownerRef on a resource you can't delete", Permission},
	{"exceeded quota", Quota},
	{"failed quota", Quota}, // a quota that requires requests or limits
	{"status unknown for quota", Quota},
	{"insufficient quota", Quota},
}

func causeIn(message string, details *metav1.StatusDetails) string {
	// Apart from webhooks, only policies give a cause without a type.
	if slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool { return cause.Type == "" }) {
		return Policy
	}
	resource := schema.GroupResource{Group: details.Group, Resource: details.Kind}
	before := apierrors.NewForbidden(resource, details.Name, errors.New("")).Error()
	if explanation, forbidden := strings.CutPrefix(message, before); forbidden {
		for _, known := range explanations {
			if strings.HasPrefix(explanation, known.begins) {
				return known.cause
			}
		}
	}
	return Other
}

// MayBeDone reports whether a failed write may have been stored: the response was lost, or
// reports an error inside the API server.
func MayBeDone(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError
}

// Describe quotes the API server's response. It does not quote other errors: they name ports
// and addresses that differ each time, and so would a status that quotes them.
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
