// SPDX-License-Identifier: Apache-2.0

// How a failed sync is retried.

package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/pkg/reconcile/failure"
)

const (
	// firstRetry is the first delay of the exponential back-off.
	firstRetry = 5 * time.Millisecond
	// LastRetry is its longest delay.
	LastRetry = 5 * time.Minute
	// LastRace is the delay from which lost races count as an outage: no one loses that many
	// in a row by chance. An admission webhook may also respond with the reasons of lost races.
	LastRace = time.Second
	// RefusedRetry is how long a refused write first waits for a change of the quota, the
	// policy or the permissions, unless the owner or its child changes earlier. It doubles
	// each time, up to LastRetry. Some refusals pass by themselves: for half a minute after
	// a CustomResourceDefinition is installed, the API server may not let its objects own
	// others.
	RefusedRetry = time.Second
	// BehindRetry is how soon a sync that found a stale cache is retried, unless an event
	// triggers it earlier.
	BehindRetry = time.Second
)

// Attempt says when a key is synced again after a failed sync.
type Attempt struct {
	// Again is false if only a change of the objects can help.
	Again bool
	// After is the time until the next sync; 0 means the exponential back-off.
	After time.Duration
	// RefusalBackoff is true if the API server would refuse the same again, so that the
	// back-off begins with RefusedRetry.
	RefusalBackoff bool
	// Held is true if only a change of the owner's spec or of its child may trigger a sync
	// before then, but neither a resync nor the owner's own status.
	Held bool
	// Expected is true for everyday errors, such as a lost race. They do not change the
	// owner's status and are not logged as errors.
	Expected bool
}

// lostRaces wraps the last error of many lost races in a row.
type lostRaces struct{ error }

// Unwrap returns the error of the last race.
func (l lostRaces) Unwrap() error { return l.error }

// TriesAgain reports whether a key whose sync ended with err is synced again even if its objects
// do not change.
func TriesAgain(err error) bool { return NextAttempt(err).Again }

// IsExpected reports whether err is an everyday error, such as a lost race, that the next sync
// resolves.
func IsExpected(err error) bool { return err != nil && NextAttempt(err).Expected }

// NextAttempt returns how to retry a key whose sync ended with err. Of several joined errors,
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
		// Nothing can be created there, and the owner is deleted with its namespace.
		return Attempt{Again: true, After: LastRetry, Held: true, Expected: true}
	case errors.Is(err, failure.ErrCRDMismatch):
		return Attempt{Again: true, After: LastRetry, Held: true}
	case failure.IsRefusal(err):
		return Attempt{Again: true, RefusalBackoff: true, Held: true}
	case failure.IsLostRace(err):
		// The cache lacked another client's write, whose event is on the way.
		return Attempt{Again: true, Expected: true}
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return Attempt{Again: true, After: min(time.Duration(seconds)*time.Second, LastRetry), Held: true}
	}
	return Attempt{Again: true, Held: true}
}
