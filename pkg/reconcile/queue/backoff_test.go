// SPDX-License-Identifier: Apache-2.0

// Tests of the back-off of keys, and of the next attempt after each error.

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/pkg/reconcile/failure"
)

var (
	things    = schema.GroupResource{Resource: "things"}
	testKey   = cache.ObjectName{Namespace: "team-a", Name: "a"}
	errOutage = errors.New("connection refused")
)

// retries is the back-off of testKey, on a clock that stands still.
type retries struct {
	*Backoff

	t     *testing.T
	clock *clocktesting.FakeClock
}

func newRetries(t *testing.T) *retries {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	return &retries{NewBackoff(clock), t, clock}
}

func (r *retries) fail(part string, inputs any, err error) error {
	return r.Fail(testKey, part, inputs, err)
}

func (r *retries) deferred(part string, inputs any) bool {
	return NextAttempt(r.Try(testKey, part, inputs)).Deferred
}

// end ends a sync, and returns the time until the key returns.
func (r *retries) end(err error) time.Duration { return r.End(testKey, err) }

// try makes a sync in which the write of a child fails, and returns the time until the key
// returns.
func (r *retries) try(inputs any, err error) time.Duration {
	return r.end(r.fail("write", inputs, err))
}

func (r *retries) expect(what string, want, got any) {
	r.t.Helper()
	expectEqual(r.t, what, want, got)
}

func TestDelaysGrow(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want []time.Duration
	}{
		"an outage": {errOutage, []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry}},
		"refusals": {forbidden, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
			32 * time.Second, 64 * time.Second, 128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute}},
	} {
		r := newRetries(t)
		for range 2 {
			for _, want := range row.want { // the sync fails before it reaches its parts
				wait := r.end(row.err)
				r.expect("the delay of "+name, want, wait)
				r.clock.Step(wait)
			}
			r.Forget(testKey)
		}
	}
}

// Changes wake a key before its next attempt is due. They must not repeat the failed write,
// unless its inputs have changed. If that attempt also fails, it must not lengthen the
// back-off.
func TestAFailedWriteWaitsForItsTime(t *testing.T) {
	for again, waits := range map[string]bool{"update": true, "create": false} {
		r := newRetries(t)
		r.try("update", forbidden)
		r.clock.Step(400 * time.Millisecond)
		r.expect(again+" is deferred", waits, r.deferred("write", again))
		if !waits {
			_ = r.fail("write", again, forbidden)
		}
		r.expect("the delay with 0.6 s left", 600*time.Millisecond, r.end(forbidden))
		r.clock.Step(600*time.Millisecond - 1)
		r.expect("in back-off until then", true, r.InBackoff(testKey))
		r.clock.Step(1)
		r.expect("in back-off after that", false, r.InBackoff(testKey) || r.deferred("write", again))
		r.expect("the next delay", 2*time.Second, r.try(again, forbidden))
	}
}

// A different failure, after a change woke the key, does not defer the planned attempt.
func TestTheEarlierOfTwoPlansStands(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want time.Duration
	}{
		"with a shorter delay": {errOutage, firstRetry},
		"with a longer delay":  {apierrors.NewTooManyRequests("", 60), 600 * time.Millisecond},
		"a lost race":          {conflict, firstRetry},
	} {
		r := newRetries(t)
		r.try("create", forbidden)
		r.clock.Step(400 * time.Millisecond)
		r.expect("the delay after an error "+name, row.want, r.try("create", row.err))
	}
}

// The status and the child have separate back-offs.
func TestAFailedStatusHoldsUpTheStatusAlone(t *testing.T) {
	r := newRetries(t)
	_ = r.fail(PartStatus, "status", forbidden)
	r.expect("the delay of the child", firstRetry, r.try("create", errOutage))
	r.Succeed(testKey, "write")
	r.expect("the child is deferred", false, r.deferred("write", "create"))
	r.expect("the status is deferred", true, r.deferred(PartStatus, "status"))
}

// While a cache lags, each event leads to another lost race. Those do not count: only an
// attempt at its planned time does.
func TestLostRacesThatEventsCauseAreNoOutage(t *testing.T) {
	r := newRetries(t)
	for range 100 {
		err := r.fail("write", "create", conflict)
		r.expect("a lost race is expected", true, NextAttempt(err).Expected)
		r.expect("its delay", firstRetry, r.end(err))
	}
}

// A webhook may respond with the reason of a lost race forever. A cache may contradict the API
// server for hours, for example while its watch hangs.
func TestWhatIsExpectedOnceBacksOff(t *testing.T) {
	for _, cause := range []error{conflict, failure.ErrBehind} {
		r := newRetries(t)
		tries := 0
		for began := r.clock.Now(); r.clock.Since(began) < time.Hour; tries++ {
			err := r.fail("write", "create", cause)
			if lasted := r.clock.Since(began); errors.Is(cause, conflict) && (lasted < LastRace/2 || lasted > 3*LastRace) {
				r.expect("races that last for "+lasted.String()+" are expected", lasted < LastRace, NextAttempt(err).Expected)
			}
			r.clock.Step(r.end(err))
		}
		if tries < 10 || tries > 40 {
			t.Errorf("%v: %d tries in an hour", cause, tries)
		}
		r.Succeed(testKey, "write")
		r.expect("after a success it is expected", true, NextAttempt(r.fail("write", "create", cause)).Expected)
	}
}

// Five children fail together while a webhook is down. Each is retried as if it were alone.
func TestPartsThatFailTogetherBackOffAlone(t *testing.T) {
	r := newRetries(t)
	for began := r.clock.Now(); r.clock.Since(began) < 30*time.Second; r.clock.Step(r.end(errOutage)) {
		for _, part := range []string{"a", "b", "c", "d", "e"} {
			if !r.deferred(part, "create") {
				_ = r.fail(part, "create", errOutage)
			}
		}
	}
	_ = r.fail("a", "create", errOutage)
	if wait := r.end(errOutage); wait > time.Minute {
		t.Errorf("after an outage of 30 s a key with five children waits %v", wait)
	}
}

// A sync may take longer than the first delays.
func TestAPartThatIsDueIsNotForgottenForAnother(t *testing.T) {
	r := newRetries(t)
	_ = r.fail("slow", "create", apierrors.NewTooManyRequests("", 60))
	_ = r.fail("quick", "create", conflict)
	r.clock.Step(time.Second)
	r.expect("the delay", 0*time.Second, r.end(conflict))
	// The next sync does not reach the quick part.
	r.expect("the slow part is deferred", true, r.deferred("slow", "create"))
	r.expect("the next delay", 59*time.Second, r.end(conflict))
}

// A sync that takes long may end after the time of a part that waits, beside one that waits longer.
func TestAPartThatIsDueIsNotForgottenBesideADeferredOne(t *testing.T) {
	for name, during := range map[string]func(r *retries){
		"it fails after the other is deferred": func(r *retries) {
			r.deferred("write", 1)
			_ = r.fail("other", 1, errOutage)
		},
		"it fails before the other is deferred": func(r *retries) {
			_ = r.fail("other", 1, errOutage)
			r.deferred("write", 1)
		},
		"it is deferred, too": func(r *retries) {
			r.end(r.fail("other", 1, errOutage))
			r.expect("whether both are deferred", true, r.deferred("other", 1) && r.deferred("write", 1))
		},
	} {
		r := newRetries(t)
		r.try(1, forbidden)
		during(r)
		r.clock.Step(100 * time.Millisecond) // the rest of the sync
		r.expect("the delay if "+name, time.Duration(0), r.end(forbidden))
	}
}

// A sync in progress may have read the cache before a change, so the change has to add the key,
// unless the sync holds a part back: then the key returns.
func TestASyncUnderWayMayBeTheLast(t *testing.T) {
	r := newRetries(t)
	expect := func(when string, want bool) {
		t.Helper()
		r.expect("in back-off "+when, want, r.InBackoff(testKey))
	}
	r.Begin(testKey)
	expect("before a failure", false)
	r.try("create", forbidden)
	expect("between two syncs", true)
	r.Begin(testKey)
	expect("at the start of a sync", false)
	r.expect("a part is deferred", true, r.deferred("write", "create"))
	expect("while a part waits", true)
	r.end(forbidden)
	r.Begin(testKey)
	_ = r.fail("write", "update", forbidden)
	expect("when a part has failed", true)
	r.end(forbidden)
	r.Forget(testKey)
	expect("when it is forgotten", false)
	r.end(failure.ErrStale)
	expect("while an attempt waits that nothing holds", false)
}

// The sync as a whole fails before it reaches its parts, for example because of a panic. That
// series ends when a part fails.
func TestAFailureOfTheSyncEndsWithOneOfAPart(t *testing.T) {
	r := newRetries(t)
	for range 10 {
		r.clock.Step(r.end(errors.New("panic")))
	}
	r.end(errors.New("panic"))
	r.clock.Step(r.try("create", errOutage))
	r.expect("in back-off when the part may be tried again", false, r.InBackoff(testKey))
}

func TestIsFailing(t *testing.T) {
	r := newRetries(t)
	expect := func(when string, want bool) {
		t.Helper()
		r.expect("the part is failing "+when, want, r.IsFailing(testKey, "write"))
	}
	expect("at first", false)
	_ = r.fail(PartStatus, "status", forbidden)
	expect("after a failure of another", false)
	_ = r.fail("write", "create", forbidden)
	expect("after a failure", true)
	r.Succeed(testKey, "write")
	expect("after a success", false)
}

func TestNextAttempt(t *testing.T) {
	backOff := Attempt{Again: true, Held: true}
	quietBackOff := Attempt{Again: true, Expected: true}
	slowly := Attempt{Again: true, RefusalBackoff: true, Held: true}
	waiting := Attempt{Again: true, RefusalBackoff: true, Held: true, Deferred: true}
	deferred := &failedPart{Attempt: waiting, err: forbidden}
	terminating := apierrors.NewForbidden(things, "web", errors.New("namespace team-a is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}

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
		"the namespace is being deleted":    {terminating, Attempt{Again: true, After: 5 * time.Minute, Held: true, Expected: true}},
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
		"all is deferred":                                         {errors.Join(deferred, deferred), waiting},
		"deferred, and another failed":                            {errors.Join(deferred, errOutage), backOff},
		"deferred, and another lost a race":                       {errors.Join(conflict, deferred), waiting},
		"deferred, and one failed before it":                      {errors.Join(errOutage, errors.Join(deferred)), backOff},
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

var (
	conflict  = apierrors.NewConflict(things, "web", errors.New("modified"))
	forbidden = apierrors.NewForbidden(things, "web", errors.New("exceeded quota"))
)

// denial returns the response of an admission webhook that chooses the code.
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
