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
	// RefusedRetry is how long a refused write first waits for a change of the quota, the policy
	// or the permissions, unless its inputs change earlier. It doubles each time, up to LastRetry.
	// Some refusals pass by themselves: for half a minute after a CustomResourceDefinition is
	// installed, the API server may not let its objects own others.
	RefusedRetry = time.Second
	// BehindRetry is how soon a sync that found a stale cache is retried, unless an event
	// triggers it earlier.
	BehindRetry = time.Second
)

// Attempt says when a key is synced again after a failed sync, or a part of one is tried again.
type Attempt struct {
	// Again is false if only a change of the objects can help.
	Again bool
	// After is the time until the next sync; 0 means the exponential back-off.
	After time.Duration
	// RefusalBackoff is true if the API server would refuse the same again, so that the
	// back-off begins with RefusedRetry.
	RefusalBackoff bool
	// Held is true if only a change of its inputs may cause an earlier attempt, but neither a
	// resync nor any other event.
	Held bool
	// Expected is true for everyday errors, such as a lost race. Neither a status nor the log
	// needs to report them.
	Expected bool
	// Deferred is true if nothing was tried, because what failed before is still in back-off:
	// see Backoff.Try. The failure was reported then.
	Deferred bool
}

// rank orders the attempts after joined errors: the lowest decides.
func (a Attempt) rank() int {
	switch {
	case a.Expected:
		return 2
	case a.Deferred:
		return 1
	}
	return 0
}

// IsExpected reports whether err is an everyday error, such as a lost race, that the next sync
// resolves.
func IsExpected(err error) bool { return NextAttempt(err).Expected }

// NextAttempt returns how to retry a key whose sync ended with err. Of several joined errors, the
// first that is neither expected nor deferred decides, else the first that is not expected.
func NextAttempt(err error) Attempt {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch inner := inner.(type) { //nolint:errorlint // the loop unwraps it
		case *failedPart:
			return inner.Attempt
		case interface{ Unwrap() []error }:
			var attempts []Attempt
			for _, err := range inner.Unwrap() {
				attempts = append(attempts, NextAttempt(err))
			}
			return slices.MinFunc(attempts, func(a, b Attempt) int { return a.rank() - b.rank() })
		}
	}
	switch {
	case err == nil:
		return Attempt{}
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
