// SPDX-License-Identifier: Apache-2.0

// Tests of the back-off of keys.

package queue

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/failure"
)

var (
	things  = schema.GroupResource{Resource: "things"}
	testKey = cache.ObjectName{Namespace: "team-a", Name: "a"}
)

// The delays of a key whose sync keeps failing.
func TestBackOff(t *testing.T) {
	outage := errors.New("connection refused")
	r, clock := newTestRetries(t)
	// planAfterThat plans the next attempt when the last one is due.
	var last time.Duration
	planAfterThat := func(err error) time.Duration {
		clock.Step(last)
		last = r.Requeue(testKey, err)
		return last
	}

	if first, second := planAfterThat(outage), planAfterThat(outage); first != firstRetry || second != 2*firstRetry {
		t.Errorf("the first delays are %v and %v", first, second)
	}
	r.Forget(testKey)
	if again := planAfterThat(outage); again != firstRetry {
		t.Errorf("after a success the delay is %v", again)
	}

	for i, want := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if delay := planAfterThat(forbidden).Seconds(); delay != want {
			t.Errorf("after %d refusals a key waits %v s, not %v s", i+1, delay, want)
		}
	}
	r.Forget(testKey)
	if again := planAfterThat(forbidden); again != RefusedRetry {
		t.Errorf("after a success a refused key waits %v", again)
	}
	r.Forget(testKey)
	planAfterThat(failure.ErrStale)
	if r.InBackoff(testKey) {
		t.Error("a key is in back-off although its next attempt is not delayed")
	}
}

// partWrite is the part that writes a child.
const partWrite = "write"

// Changes wake a key before its next attempt is due. They must not repeat the failed
// write, unless the objects that it was made from have changed. If that attempt fails as
// well, it must not lengthen the back-off.
func TestAFailedTaskWaitsForItsTime(t *testing.T) {
	for name, row := range map[string]struct {
		again string
		waits bool
	}{
		"the task is the same": {"update", true},
		"the task is another":  {"create", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newTestRetries(t)
			_ = r.Fail(testKey, partWrite, "update", forbidden)
			r.Requeue(testKey, forbidden)
			clock.Step(400 * time.Millisecond)
			if err := r.Deferred(testKey, partWrite, row.again); (err != nil) != row.waits {
				t.Fatalf("the deferred error is %v", err)
			}
			if !row.waits {
				_ = r.Fail(testKey, partWrite, row.again, forbidden)
			}
			if wait := r.Requeue(testKey, forbidden); wait != 600*time.Millisecond {
				t.Errorf("a key with 0.6 s left waits %v", wait)
			}
			clock.Step(600*time.Millisecond - 1)
			if !r.InBackoff(testKey) {
				t.Error("the key is not in back-off until then")
			}
			clock.Step(1)
			if r.InBackoff(testKey) || r.Deferred(testKey, partWrite, row.again) != nil {
				t.Error("the key is in back-off after that")
			}
			_ = r.Fail(testKey, partWrite, row.again, forbidden)
			if further := r.Requeue(testKey, forbidden); further != 2*time.Second {
				t.Errorf("after that the key waits %v", further)
			}
		})
	}
}

// A failure of another kind, after a change woke the key, does not defer the planned
// attempt.
func TestTheEarlierOfTwoPlansStands(t *testing.T) {
	of := "create"
	for name, row := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"with a shorter delay": {errors.New("connection refused"), firstRetry},
		"with a longer delay":  {apierrors.NewTooManyRequests("", 60), 600 * time.Millisecond},
		"a lost race":          {apierrors.NewConflict(things, "web", errors.New("modified")), firstRetry},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newTestRetries(t)
			_ = r.Fail(testKey, partWrite, of, forbidden)
			r.Requeue(testKey, forbidden)
			clock.Step(400 * time.Millisecond)
			if NextAttempt(row.err).Held {
				_ = r.Fail(testKey, partWrite, of, row.err)
			}
			if wait := r.Requeue(testKey, row.err); wait != row.wait {
				t.Errorf("the key waits %v, not %v", wait, row.wait)
			}
		})
	}
}

// The status and the child have separate back-offs.
func TestAFailedStatusHoldsUpTheStatusAlone(t *testing.T) {
	r, _ := newTestRetries(t)
	work, status := "create", "status"
	_ = r.Fail(testKey, PartStatus, status, forbidden)
	_ = r.Fail(testKey, partWrite, work, errors.New("connection refused"))
	if wait := r.Requeue(testKey, errors.Join(forbidden, errors.New("connection refused"))); wait != firstRetry {
		t.Errorf("the child waits %v", wait)
	}
	r.Succeed(testKey, partWrite)
	if r.Deferred(testKey, partWrite, work) != nil || r.Deferred(testKey, PartStatus, status) == nil {
		t.Error("a success of one part reset the failures of the other")
	}
}

// While a cache lags, each event leads to one more lost race. Those do not count: only an
// attempt at its planned time does.
func TestLostRacesThatEventsCauseAreNoOutage(t *testing.T) {
	r, _ := newTestRetries(t)
	for range 100 {
		if err := r.Fail(testKey, partWrite, "create", conflict); !NextAttempt(err).Expected {
			t.Fatalf("a lost race is judged as %v", err)
		}
		if wait := r.Requeue(testKey, conflict); wait != firstRetry {
			t.Fatalf("the key waits %v", wait)
		}
	}
}

// A webhook may answer with the reason of a lost race, for ever.
func TestManyLostRacesInARowAreAnOutage(t *testing.T) {
	r, clock := newTestRetries(t)
	var told, tries int
	for began := clock.Now(); clock.Since(began) < time.Hour; tries++ {
		err := r.Fail(testKey, partWrite, "create", conflict)
		if !NextAttempt(err).Expected {
			told++
		}
		if lasted := clock.Since(began); told > 0 != (lasted > LastRace) && (lasted < LastRace/2 || lasted > 3*LastRace) {
			t.Fatalf("after %v the race is judged as %+v", lasted, NextAttempt(err))
		}
		clock.Step(r.Requeue(testKey, err))
	}
	if tries > 30 {
		t.Errorf("%d tries in an hour", tries)
	}
	r.Succeed(testKey, partWrite)
	if err := r.Fail(testKey, partWrite, "create", conflict); !NextAttempt(err).Expected {
		t.Errorf("after a success a lost race is judged as %v", err)
	}
}

// Five children fail together for as long as a webhook is down. Each is tried again as if
// it were alone.
func TestPartsThatFailTogetherBackOffAlone(t *testing.T) {
	r, clock := newTestRetries(t)
	down := denial(500, "")
	parts := []string{"a", "b", "c", "d", "e"}
	for began := clock.Now(); clock.Since(began) < 30*time.Second; {
		for _, part := range parts {
			if r.Deferred(testKey, part, "create") == nil {
				_ = r.Fail(testKey, part, "create", down)
			}
		}
		clock.Step(r.Requeue(testKey, down))
	}
	left, alone := time.Duration(0), firstRetry
	for range 20 {
		left += alone
		if left >= 30*time.Second {
			break
		}
		alone *= 2
	}
	_ = r.Fail(testKey, "a", "create", down)
	if wait := r.Requeue(testKey, down); wait > 2*alone {
		t.Errorf("after an outage of 30 s a key with five children waits %v, one with a child %v", wait, 2*alone)
	}
}

// A sync may take longer than the first delays.
func TestAPartThatIsDueIsNotForgottenForAnother(t *testing.T) {
	r, clock := newTestRetries(t)
	_ = r.Fail(testKey, "slow", "create", apierrors.NewTooManyRequests("", 60))
	_ = r.Fail(testKey, "quick", "create", conflict)
	clock.Step(time.Second)
	if wait := r.Requeue(testKey, conflict); wait != 0 {
		t.Errorf("the key waits %v", wait)
	}
	// The next sync does not come to the quick part.
	if err := r.Deferred(testKey, "slow", "create"); err == nil {
		t.Error("the other part is not deferred")
	}
	if wait := r.Requeue(testKey, conflict); wait != 59*time.Second {
		t.Errorf("then the key waits %v", wait)
	}
}

func TestRefusedFor(t *testing.T) {
	r, clock := newTestRetries(t)
	_ = r.Fail(testKey, partWrite, "create", forbidden)
	clock.Step(time.Minute)
	_ = r.Fail(testKey, partWrite, "create", denial(500, "")) // in between
	clock.Step(time.Minute)
	_ = r.Fail(testKey, partWrite, "create", forbidden)
	if lasted := r.RefusedFor(testKey, partWrite); lasted != 2*time.Minute {
		t.Errorf("the refusal has lasted %v", lasted)
	}
	_ = r.Fail(testKey, partWrite, "update", forbidden)
	if lasted := r.RefusedFor(testKey, partWrite); lasted != 0 {
		t.Errorf("the refusal of another task has lasted %v", lasted)
	}
	r.Succeed(testKey, partWrite)
	if lasted := r.RefusedFor(testKey, partWrite); lasted != 0 {
		t.Errorf("after a success it has lasted %v", lasted)
	}
}

// newTestRetries returns retries whose clock stands still.
func newTestRetries(t *testing.T) (*Backoff, *clocktesting.FakeClock) {
	t.Helper()
	delayed := workqueue.NewTypedDelayingQueue[cache.ObjectName]()
	t.Cleanup(delayed.ShutDown)
	clock := clocktesting.NewFakeClock(time.Now())
	return NewBackoff(delayed, clock), clock
}

// delayedKeys records the keys that are added later.
type delayedKeys struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]

	added map[cache.ObjectName]time.Duration
}

// AddAfter records a key.
func (q *delayedKeys) AddAfter(key cache.ObjectName, wait time.Duration) { q.added[key] = wait }

func TestTheKeyIsAddedForItsNextAttempt(t *testing.T) {
	added := &delayedKeys{added: map[cache.ObjectName]time.Duration{}}
	r := NewBackoff(added, clocktesting.NewFakeClock(time.Now()))
	_ = r.Fail(testKey, partWrite, "create", forbidden)
	wait := r.Requeue(testKey, forbidden)
	if got, known := added.added[testKey]; !known || got != wait || wait != RefusedRetry {
		t.Errorf("the key is added after %v (%v), and said to be after %v", got, known, wait)
	}
}

// A sync under way may have read the cache before a change, so the change has to add the key,
// unless the sync holds a part back: it comes again then.
func TestASyncUnderWayMayBeTheLast(t *testing.T) {
	r, _ := newTestRetries(t)
	if r.Begin(testKey); r.InBackoff(testKey) {
		t.Error("a key that has not failed is in back-off")
	}
	_ = r.Fail(testKey, partWrite, "create", forbidden)
	r.Requeue(testKey, forbidden)
	if !r.InBackoff(testKey) {
		t.Error("between two syncs the key is not in back-off")
	}
	r.Begin(testKey)
	if r.InBackoff(testKey) {
		t.Error("at the start of a sync the key is in back-off")
	}
	if r.Deferred(testKey, partWrite, "create") == nil || !r.InBackoff(testKey) {
		t.Error("the key is not in back-off, although a part of its sync waits")
	}
	r.Requeue(testKey, forbidden)
	r.Begin(testKey)
	if _ = r.Fail(testKey, partWrite, "update", forbidden); !r.InBackoff(testKey) {
		t.Error("the key is not in back-off, although a part of its sync has failed")
	}
	r.Requeue(testKey, forbidden)
	r.Forget(testKey)
	if r.InBackoff(testKey) {
		t.Error("a key that is forgotten is in back-off")
	}
}

// The sync as a whole fails before it comes to its parts, as when it panics. That is over when
// a part fails.
func TestAFailureOfTheSyncEndsWithOneOfAPart(t *testing.T) {
	r, clock := newTestRetries(t)
	for range 10 {
		clock.Step(r.Requeue(testKey, errors.New("panic")))
	}
	r.Requeue(testKey, errors.New("panic"))
	_ = r.Fail(testKey, partWrite, "create", errors.New("connection refused"))
	clock.Step(r.Requeue(testKey, errors.New("connection refused")))
	if r.InBackoff(testKey) {
		t.Error("the part may be tried again, and the key is in back-off")
	}
}

func TestIsFailing(t *testing.T) {
	r, _ := newTestRetries(t)
	expect := func(when string, want bool) {
		t.Helper()
		if got := r.IsFailing(testKey, partWrite); got != want {
			t.Errorf("%s the part is failing: %v", when, got)
		}
	}
	expect("at first", false)
	_ = r.Fail(testKey, PartStatus, "status", forbidden)
	expect("after a failure of another part", false)
	_ = r.Fail(testKey, partWrite, "create", forbidden)
	expect("after a failure", true)
	r.Succeed(testKey, partWrite)
	expect("after a success", false)
}

func TestAFailureIsReportedOnceAnHour(t *testing.T) {
	r, clock := newTestRetries(t)
	for i, row := range []struct {
		cause string
		after time.Duration
		want  bool
	}{
		{"quota", 0, true}, {"quota", 0, false}, {"webhook", 0, true}, {"quota", reportAgain - 1, false}, {"quota", 1, true}, {"quota", 1, false},
	} {
		clock.Step(row.after)
		if got := r.Reports(testKey, row.cause); got != row.want {
			t.Errorf("%d: %s is reported: %v", i, row.cause, got)
		}
	}
	r.Forget(testKey)
	if !r.Reports(testKey, "quota") {
		t.Error("the next series is not reported")
	}
}

// A cache may contradict the API server for hours, as while its watch hangs.
func TestACacheThatStaysBehindIsAskedSeldom(t *testing.T) {
	r, clock := newTestRetries(t)
	tries := 0
	for began := clock.Now(); clock.Since(began) < time.Hour; tries++ {
		err := r.Fail(testKey, partWrite, "create", failure.ErrBehind)
		clock.Step(r.Requeue(testKey, err))
	}
	if tries > 40 {
		t.Errorf("%d tries in an hour", tries)
	}
}
