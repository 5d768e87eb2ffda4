// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var things = schema.GroupResource{Group: "apps", Resource: "things"}

// byAuthorizer answers as responsewriters.ForbiddenStatusError of the API server does.
func byAuthorizer(call, name string) error {
	return apierrors.NewForbidden(things, name, errors.New(`User "controller" cannot `+call+` in API group "apps" in the namespace "ns"`))
}

// byWebhook answers as the API server does for a webhook that denies.
func byWebhook(result metav1.Status) error {
	result.Message = `admission webhook "x" denied the request: ` + result.Message
	return &apierrors.StatusError{ErrStatus: result}
}

func byAdmission(explanation string) error {
	return apierrors.NewForbidden(things, "web", errors.New(explanation))
}

func byPolicy(reason metav1.StatusReason, code int32) error {
	err := apierrors.NewForbidden(things, "web", errors.New("ValidatingAdmissionPolicy 'p' denied request: no"))
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'p' denied request: no"}}
	return err
}

func TestCauseOf(t *testing.T) {
	lie := metav1.Status{
		Code: 403, Reason: metav1.StatusReasonForbidden, Message: byAuthorizer(`create resource "things"`, "").Error(),
		Details: &metav1.StatusDetails{Group: "apps", Kind: "things", Causes: []metav1.StatusCause{{Message: "a policy"}}},
	}
	for say, row := range map[string]struct {
		err  error
		want string
	}{
		"may not create":                            {byAuthorizer(`create resource "things"`, ""), Permission},
		"may not update the status":                 {byAuthorizer(`update resource "things/status"`, "web"), Permission},
		"credentials that have expired":             {apierrors.NewUnauthorized("Unauthorized"), Permission},
		"may not set a blocking owner":              {byAdmission("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , "), Permission},
		"a quota":                                   {byAdmission("exceeded quota: q, requested: count/things=1, used: count/things=1, limited: count/things=1"), Quota},
		"a quota that asks for requests":            {byAdmission("failed quota: q: must specify cpu for: nginx"), Quota},
		"a policy":                                  {byPolicy(metav1.StatusReasonInvalid, 422), Policy},
		"a policy that says Forbidden":              {byPolicy(metav1.StatusReasonForbidden, 403), Policy},
		"a policy that says Unauthorized":           {byPolicy(metav1.StatusReasonUnauthorized, 401), Policy},
		"a webhook":                                 {byWebhook(metav1.Status{Code: 403, Message: "exceeded quota"}), Webhook},
		"a webhook that claims to be somebody else": {byWebhook(lie), Webhook},
		"another plugin":                            {byAdmission("maximum cpu usage is 1"), Other},
		"invalid":                                   {apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")}), Other},
		"a 400 without details":                     {apierrors.NewBadRequest("no"), Other},
		"a conflict":                                {apierrors.NewConflict(things, "web", errors.New("stale")), ""},
		"no answer":                                 {errors.New("connection refused"), ""},
	} {
		if got := CauseOf(fmt.Errorf("creating: %w", row.err)); got != row.want {
			t.Errorf("%s: %q, want %q: %v", say, got, row.want, row.err)
		}
	}
}

func TestMayBeDone(t *testing.T) {
	for what, row := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict":              {apierrors.NewConflict(things, "web", errors.New("modified")), false},
		"a refusal":               {byAdmission("exceeded quota"), false},
		"an internal error":       {fmt.Errorf("writing: %w", apierrors.NewInternalError(errors.New("etcd"))), true},
		"a timeout of the server": {apierrors.NewTimeoutError("slow", 1), true},
		"an answer that was lost": {errors.New("connection reset by peer"), true},
	} {
		if got := MayBeDone(row.err); got != row.want {
			t.Errorf("%s may have been stored: %v, want %v", what, got, row.want)
		}
	}
}

// answered returns an answer with a code and a reason.
func answered(code int32, reason metav1.StatusReason, details *metav1.StatusDetails) error {
	return fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Details: details}})
}

func TestIsRefusal(t *testing.T) {
	for what, row := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                      {nil, false},
		"no answer":                     {errors.New("connection refused"), false},
		"a code below 400":              {answered(399, "", nil), false},
		"400":                           {answered(400, "", nil), true},
		"499":                           {answered(499, "", nil), true},
		"500":                           {answered(500, "", nil), false},
		"a conflict":                    {answered(409, metav1.StatusReasonConflict, nil), false},
		"a webhook's 409":               {answered(409, "", nil), true},
		"too many requests":             {answered(429, metav1.StatusReasonTooManyRequests, nil), false},
		"a timeout":                     {answered(408, metav1.StatusReasonTimeout, nil), false},
		"a server's timeout":            {answered(408, metav1.StatusReasonServerTimeout, nil), false},
		"credentials that have expired": {answered(401, metav1.StatusReasonUnauthorized, nil), false},
		"a policy that says Unauthorized": {
			answered(401, metav1.StatusReasonUnauthorized, &metav1.StatusDetails{Kind: "things", Name: "web"}), true,
		},
		"a proxy that says Unauthorized": {
			answered(401, metav1.StatusReasonUnauthorized, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}}), false,
		},
		"a namespace that goes": {
			answered(403, metav1.StatusReasonForbidden, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}), false,
		},
	} {
		if got := IsRefusal(row.err); got != row.want {
			t.Errorf("%s is a refusal: %v, want %v", what, got, row.want)
		}
	}
}

func TestIsNotFound(t *testing.T) {
	for what, row := range map[string]struct {
		err  error
		want bool
	}{
		"the object":           {apierrors.NewNotFound(things, "web"), true},
		"the object, wrapped":  {fmt.Errorf("reading: %w", apierrors.NewNotFound(things, "web")), true},
		"another resource":     {apierrors.NewNotFound(schema.GroupResource{Resource: "others"}, "web"), false},
		"without details":      {answered(404, metav1.StatusReasonNotFound, nil), false},
		"a webhook's code 404": {answered(404, "", &metav1.StatusDetails{Kind: "things"}), false},
		"another reason":       {apierrors.NewConflict(things, "web", errors.New("modified")), false},
		"no answer":            {errors.New("connection refused"), false},
		"no error":             {nil, false},
	} {
		if got := IsNotFound(row.err, "things"); got != row.want {
			t.Errorf("%s is not found: %v, want %v", what, got, row.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, err := range map[string]error{
		"exceeded quota":                        fmt.Errorf("creating: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Message: "exceeded quota"}}),
		"the API server did not answer in time": fmt.Errorf("creating: %w", context.DeadlineExceeded),
		"the API server could not be reached":   errors.New("dial tcp 10.0.0.1:6443: connection refused"),
	} {
		if got := Describe(err); got != want {
			t.Errorf("%v is described as %q, want %q", err, got, want)
		}
	}
	if got := Describe(answered(500, "", nil)); got != "the API server could not be reached" {
		t.Errorf("an answer without words is described as %q", got)
	}
}
