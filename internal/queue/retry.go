// SPDX-License-Identifier: Apache-2.0

// What becomes of a key whose sync failed: the one place that judges errors.

package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/internal/failure"
)

const (
	// firstRetry is where the exponential back-off of a failure begins.
	firstRetry = 5 * time.Millisecond
	// LastRetry bounds it.
	LastRetry = 5 * time.Minute
	// LastRace is the delay from which on lost races count as an outage: nobody loses that
	// many in a row by chance. An admission webhook may answer with their reasons, too.
	LastRace = time.Second
	// RefusedRetry is how long a refused write first waits for a change of the quota, the
	// policy or the permissions, unless the Foo or its child changes before. It
	// doubles each time, up to LastRetry. Some refusals pass by themselves: for half a
	// minute after a definition is installed, the API server may not let its objects own
	// others.
	RefusedRetry = time.Second
	// BehindRetry is when a sync is tried again that found the cache stale, if the event
	// that it waits for does not trigger one before.
	BehindRetry = time.Second
)

// Attempt says when a key is tried again after a sync.
type Attempt struct {
	// Again is false if only a change of the objects can help.
	Again bool
	// After is the time until then; 0 means the exponential back-off.
	After time.Duration
	// RefusalBackoff is true if the API server would refuse the same again: the back-off
	// begins with RefusedRetry.
	RefusalBackoff bool
	// Held is true if nothing but a change of the Foo's spec or of its child may
	// trigger a sync before then: neither a resync nor the Foo's own status.
	Held bool
	// Expected errors, such as a lost race, happen every day and are not logged as
	// errors.
	Expected bool
}

// lostRaces is the error of the last of many lost races in a row.
type lostRaces struct{ error }

// Unwrap returns the error of the last race.
func (l lostRaces) Unwrap() error { return l.error }

// TriesAgain reports whether a key whose sync ended with err is synced again without a change of
// its objects.
func TriesAgain(err error) bool { return NextAttempt(err).Again }

// IsExpected reports whether err, such as a lost race, happens every day and is over with the
// next sync.
func IsExpected(err error) bool { return err != nil && NextAttempt(err).Expected }

// NextAttempt returns what becomes of a key whose sync ended with err. Of several errors,
// the first that is not expected decides.
func NextAttempt(err error) Attempt {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		var attempts []Attempt
		for _, err := range all.Unwrap() {
			attempts = append(attempts, NextAttempt(err))
		}
		return attempts[max(0, slices.IndexFunc(attempts, func(a Attempt) bool { return !a.Expected }))]
	}
	switch {
	case err == nil:
		return Attempt{}
	case errors.As(err, new(lostRaces)):
		return Attempt{Again: true, Held: true}
	case errors.Is(err, failure.ErrStale), errors.Is(err, failure.ErrBehind):
		return Attempt{Again: true, After: BehindRetry, Expected: true}
	case errors.Is(err, context.Canceled):
		// The controller is stopping.
		return Attempt{Expected: true}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nothing can be created there any more, and the Foo goes with its namespace.
		return Attempt{Again: true, After: LastRetry, Held: true, Expected: true}
	case errors.Is(err, failure.ErrCRDMismatch):
		return Attempt{Again: true, After: LastRetry, Held: true}
	case failure.IsRefusal(err):
		return Attempt{Again: true, RefusalBackoff: true, Held: true}
	case failure.IsLostRace(err):
		// The cache was behind another's write; its event is on the way.
		return Attempt{Again: true, Expected: true}
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return Attempt{Again: true, After: min(time.Duration(seconds)*time.Second, LastRetry), Held: true}
	}
	return Attempt{Again: true, Held: true}
}
