// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"testing"

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
