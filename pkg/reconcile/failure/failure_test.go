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

// byAuthorizer responds like the API server's responsewriters.ForbiddenStatusError.
func byAuthorizer(call, name string) error {
	return apierrors.NewForbidden(things, name, errors.New(`User "controller" cannot `+call+` in API group "apps" in the namespace "ns"`))
}

// byWebhook responds like the API server for a webhook that denies.
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
		"may not create":                           {byAuthorizer(`create resource "things"`, ""), Permission},
		"may not update the status":                {byAuthorizer(`update resource "things/status"`, "web"), Permission},
		"credentials that have expired":            {apierrors.NewUnauthorized("Unauthorized"), Permission},
		"may not set a blocking owner":             {byAdmission("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , "), Permission},
		"a quota":                                  {byAdmission("exceeded quota: q, requested: count/things=1, used: count/things=1, limited: count/things=1"), Quota},
		"a quota that requires requests":           {byAdmission("failed quota: q: must specify cpu for: nginx"), Quota},
		"a policy":                                 {byPolicy(metav1.StatusReasonInvalid, 422), Policy},
		"a policy that says Forbidden":             {byPolicy(metav1.StatusReasonForbidden, 403), Policy},
		"a policy that says Unauthorized":          {byPolicy(metav1.StatusReasonUnauthorized, 401), Policy},
		"a webhook":                                {byWebhook(metav1.Status{Code: 403, Message: "exceeded quota"}), Webhook},
		"a webhook that claims to be someone else": {byWebhook(lie), Webhook},
		"another plugin":                           {byAdmission("maximum cpu usage is 1"), Other},
		"invalid":                                  {apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")}), Other},
		"a 400 without details":                    {apierrors.NewBadRequest("no"), Other},
		"a conflict":                               {apierrors.NewConflict(things, "web", errors.New("stale")), ""},
		"no answer":                                {errors.New("connection refused"), ""},
	} {
		if got := CauseOf(fmt.Errorf("creating: %w", row.err)); got != row.want {
			t.Errorf("%s: %q, want %q: %v", say, got, row.want, row.err)
		}
	}
}

// answered returns a response with a code and a reason.
func answered(code int32, reason metav1.StatusReason, details *metav1.StatusDetails) error {
	return fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Details: details}})
}

func TestWhatAnErrorMeans(t *testing.T) {
	type verdict struct{ isRefusal, isNotFound, mayBeDone bool }
	thing := &metav1.StatusDetails{Kind: "things", Name: "web"}
	caused := func(code int32, reason metav1.StatusReason, cause metav1.CauseType) error {
		return answered(code, reason, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}})
	}
	for what, row := range map[string]struct {
		err  error
		want verdict
	}{
		"no answer":                       {errors.New("connection refused"), verdict{mayBeDone: true}},
		"a code below 400":                {answered(399, "", nil), verdict{}},
		"400":                             {answered(400, "", nil), verdict{isRefusal: true}},
		"499":                             {answered(499, "", nil), verdict{isRefusal: true}},
		"500":                             {answered(500, "", nil), verdict{mayBeDone: true}},
		"a quota":                         {byAdmission("exceeded quota"), verdict{isRefusal: true}},
		"a conflict":                      {answered(409, metav1.StatusReasonConflict, nil), verdict{}},
		"a webhook's 409":                 {answered(409, "", nil), verdict{isRefusal: true}},
		"too many requests":               {answered(429, metav1.StatusReasonTooManyRequests, nil), verdict{}},
		"a timeout":                       {answered(408, metav1.StatusReasonTimeout, nil), verdict{}},
		"a server's timeout":              {answered(408, metav1.StatusReasonServerTimeout, nil), verdict{}},
		"a gateway's timeout":             {apierrors.NewTimeoutError("slow", 1), verdict{mayBeDone: true}},
		"credentials that have expired":   {answered(401, metav1.StatusReasonUnauthorized, nil), verdict{}},
		"a policy that says Unauthorized": {answered(401, metav1.StatusReasonUnauthorized, thing), verdict{isRefusal: true}},
		"a proxy that says Unauthorized":  {caused(401, metav1.StatusReasonUnauthorized, metav1.CauseTypeUnexpectedServerResponse), verdict{}},
		"a namespace that goes":           {caused(403, metav1.StatusReasonForbidden, corev1.NamespaceTerminatingCause), verdict{}},
		"no such object":                  {apierrors.NewNotFound(things, "web"), verdict{isNotFound: true}},
		"no such object, wrapped":         {answered(404, metav1.StatusReasonNotFound, thing), verdict{isNotFound: true}},
		"no object of another resource":   {apierrors.NewNotFound(schema.GroupResource{Resource: "others"}, "web"), verdict{}},
		"404 without details":             {answered(404, metav1.StatusReasonNotFound, nil), verdict{}},
		"a webhook's 404":                 {answered(404, "", thing), verdict{isRefusal: true}},
	} {
		if got := (verdict{IsRefusal(row.err), IsNotFound(row.err, "things"), MayBeDone(row.err)}); got != row.want {
			t.Errorf("%s is judged %+v, want %+v", what, got, row.want)
		}
	}
	if IsRefusal(nil) || IsNotFound(nil, "things") {
		t.Error("no error is an error")
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
