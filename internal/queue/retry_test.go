// SPDX-License-Identifier: Apache-2.0

// Tests of what each error means for the next attempt.

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/test/footest"
)

func TestNextAttempt(t *testing.T) {
	backOff := Attempt{Again: true, Held: true}
	quietBackOff := Attempt{Again: true, Expected: true}
	slowly := Attempt{Again: true, RefusalBackoff: true, Held: true}

	for name, row := range map[string]struct {
		err  error
		want Attempt
	}{
		"success":                           {nil, Attempt{}},
		"a conflict":                        {conflict, quietBackOff},
		"exists already":                    {apierrors.NewAlreadyExists(things, "web"), quietBackOff},
		"deleted meanwhile":                 {apierrors.NewNotFound(things, "web"), quietBackOff},
		"a stale cache":                     {failure.ErrStale, Attempt{Again: true, After: time.Second, Expected: true}},
		"invalid":                           {apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "web", field.ErrorList{}), slowly},
		"forbidden by quota":                {forbidden, slowly},
		"the namespace is being deleted":    {footest.NamespaceTerminating(), Attempt{Again: true, After: 5 * time.Minute, Held: true, Expected: true}},
		"the controller is stopping":        {context.Canceled, Attempt{Expected: true}},
		"a call that hung":                  {context.DeadlineExceeded, backOff},
		"server error":                      {apierrors.NewInternalError(errors.New("boom")), backOff},
		"connection refused":                {errors.New("dial tcp: connection refused"), backOff},
		"too many requests, retry in 7 s":   {apierrors.NewTooManyRequests("slow down", 7), Attempt{Again: true, After: 7 * time.Second, Held: true}},
		"too many requests, no time given":  {apierrors.NewTooManyRequests("slow down", 0), backOff},
		"too many requests, retry tomorrow": {apierrors.NewTooManyRequests("slow down", 86_400), Attempt{Again: true, After: 5 * time.Minute, Held: true}},
		"the definition does not fit":       {failure.ErrCRDMismatch, Attempt{Again: true, After: 5 * time.Minute, Held: true}},
		"refused, and the status lost a race: the refusal counts": {errors.Join(conflict, forbidden), slowly},
		"a webhook's denial with the code 409":                    {denial(409), slowly},
		"credentials that have expired":                           {apierrors.NewUnauthorized("Unauthorized"), backOff},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{row.err, wrapped(row.err)} {
				if got := NextAttempt(err); got != row.want {
					t.Errorf("nextAttempt(%v) = %+v, not %+v", err, got, row.want)
				}
			}
		})
	}
}

func TestIsDeferred(t *testing.T) {
	held, other := deferred{forbidden}, errors.New("connection refused")
	for _, row := range []struct {
		err  error
		want bool
	}{{nil, false}, {other, false}, {held, true}, {errors.Join(held, held), true}, {errors.Join(held, other), false}, {errors.Join(other, held), false}} {
		if got := IsDeferred(row.err); got != row.want {
			t.Errorf("%v is deferred: %v", row.err, got)
		}
	}
}

var (
	conflict  = apierrors.NewConflict(things, "web", errors.New("modified"))
	forbidden = apierrors.NewForbidden(things, "web", errors.New("exceeded quota"))
)

// denial is what an admission webhook answers with a code of its own.
func denial(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "x" denied the request: no`}}
}

// wrapped wraps an error as a sync does.
func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(nil, fmt.Errorf("creating child %q: %w", "web", err))
}
