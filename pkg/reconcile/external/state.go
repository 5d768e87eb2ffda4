// SPDX-License-Identifier: Apache-2.0

// What is known of one object, and when its next call is due.

package external

import (
	"context"
	"hash/fnv"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// state is what is known of an object with one spec.
type state[T metav1.Object, R any] struct {
	object T
	answer Answer[R]
	// due is when the next call is due, or zero if none is.
	due time.Time
	// failures is the number of calls that have failed in a row, and shown when the error in the answer was
	// set.
	failures int
	shown    time.Time
	// request is the newest request of a user.
	request string
	// running is the call in progress whose result counts, or nil.
	running *running[T, R]
}

// running is a call in progress.
type running[T metav1.Object, R any] struct {
	state  *state[T, R]
	object T
	ctx    context.Context //nolint:containedctx // that of the call
	cancel context.CancelFunc
}

// result is what came of a call: an answer, and when it has to be renewed, or an error. isStale is
// true if it was not made, because the object could not be read or has changed, and hangs if it
// has not returned yet.
type result[R any] struct {
	value                  R
	renew                  time.Time
	err                    error
	isUndo, isStale, hangs bool
}

// abort cancels the call in progress, whose result no longer counts.
func (s *state[T, R]) abort() {
	if s.running != nil {
		s.running.cancel()
		s.running = nil
	}
}

// succeed records that a call succeeded, and reports whether that changes what is known.
func (s *state[T, R]) succeed(done result[R]) (isNew bool) {
	before := s.answer
	s.failures = 0
	if done.isUndo {
		s.answer = Answer[R]{Undone: true}
		return true
	}
	s.answer = Answer[R]{Known: true, Value: done.value}
	return !before.Known || before.Err != nil || before.Pending || !reflect.DeepEqual(before.Value, done.value)
}

// fail records that a call failed, and reports whether that changes what is known. If the call was not even
// made, that says nothing about the external system.
func (s *state[T, R]) fail(done result[R], now time.Time) (isNew bool) {
	s.failures++
	if done.isStale {
		return false
	}
	was, wasPending := s.answer.Err, s.answer.Pending
	s.answer.Pending = false
	if was != nil && !wasPending && now.Sub(s.shown) < showAgain {
		return false
	}
	s.answer.Err, s.shown = done.err, now
	return wasPending || was == nil || was.Error() != done.err.Error()
}

// begin returns the state of an object at the start.
func (r *Runner[T, R]) begin(key cache.ObjectName, object T) *state[T, R] {
	now := r.objects.Clock.Now()
	s := &state[T, R]{object: object, due: now}
	if r.call.Recall == nil {
		return s
	}
	was := r.call.Recall(object)
	soon := now.Add(anywhere(key, now, overdueRetry))
	switch {
	case was.Answered && !isTerminating(object):
		s.answer.Known, s.answer.Value = true, was.Answer
		s.due = time.Time{}
		if r.call.Poll > 0 {
			s.due = now.Add(anywhere(key, now, r.call.Poll))
		}
		if renew := r.renewal(was.Answer); !renew.IsZero() && renew.Before(soon) {
			s.due = earlier(s.due, soon)
		} else {
			s.due = earlier(s.due, renew)
		}
	case was.Asked:
		s.due = soon
	}
	return s
}

// next returns when the call after a successful one is due, or zero.
func (r *Runner[T, R]) next(key cache.ObjectName, done result[R], now time.Time) (due time.Time) {
	if done.isUndo {
		return due
	}
	if r.call.Poll > 0 {
		due = now.Add(spread(key, now, r.call.Poll))
	}
	renew := done.renew
	if soonest := now.Add(overdueRetry); !renew.IsZero() && renew.Before(soonest) {
		renew = soonest
	}
	return earlier(due, renew)
}

func (r *Runner[T, R]) renewal(answer R) (at time.Time) {
	if r.call.Renew != nil {
		at = r.call.Renew(answer)
	}
	return at
}

// earlier returns the earlier of two times, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// backoff returns the time to wait after a number of failures in a row.
func backoff(failures int) time.Duration {
	wait := firstRetry
	for i := 1; i < failures && wait < lastRetry; i++ {
		wait *= 2
	}
	return min(wait, lastRetry)
}

// spread returns a time, up to a tenth more or less, so that calls that were made together are not made together
// again.
func spread(key cache.ObjectName, now time.Time, of time.Duration) time.Duration {
	return of - of/10 + anywhere(key, now, of/5)
}

// anywhere returns any time from 0 to one that is given.
func anywhere(key cache.ObjectName, now time.Time, within time.Duration) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key.String() + now.String()))
	const parts = 1 << 10
	return time.Duration(hash.Sum64()%parts) * (within / parts)
}
