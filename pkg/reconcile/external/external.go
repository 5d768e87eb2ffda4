// SPDX-License-Identifier: Apache-2.0

// Package external makes calls outside the cluster for each object of a kind, such as one that registers a
// domain, and undoes them before the object is gone. A finalizer keeps the object until then. Package plan
// declares such a call as a row of a table; a controller without tables can use a [Runner] as it is.
//
// The calls are made in separate workers, with their own deadline and back-off, in turns between namespaces. A
// call that hangs or panics delays only its own object.
package external

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// DefaultTimeout and DefaultWorkers are those of a Call that sets none.
const (
	DefaultTimeout = 30 * time.Second
	DefaultWorkers = 10
)

const (
	// firstRetry is the first exponential back-off of a failed call, and lastRetry the longest.
	// Retrying every few milliseconds would only add to an external system's load.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
	// overdueRetry is how soon an answer is asked for again that has to be renewed already, and the time in
	// which the first calls after a start are spread.
	overdueRetry = time.Minute
	// showAgain is how long the text of an error stands if further calls fail with another. Many texts have a
	// port or a request's number, and each would be a write of a status.
	showAgain = 10 * time.Minute
	// returnTimeout is how much longer than its deadline a call may take, and stopTimeout how long a stop
	// waits for calls that do not return.
	returnTimeout = time.Second
	stopTimeout   = 5 * time.Second
)

// Call is a call outside the cluster, which answers with an R. Both functions may be called at any time and any
// number of times for the same object, also by a restarted controller, but never at the same time. They bring
// the external system into the object's desired state, whatever its state was before.
type Call[T metav1.Object, R any] struct {
	// Name names the call in logs, and its queue in metrics, such as "registration".
	Name string
	// Do brings the external system into the desired state.
	Do func(ctx context.Context, object T) (R, error)
	// Undo removes what Do created, of an object in deletion. It is no error if that does not exist.
	Undo func(ctx context.Context, object T) error
	// Poll is the time between two calls of Do for the same spec, a tenth more or less; 0 means that there is
	// only one. Renew returns when an answer has to be renewed if that is earlier, or zero. It may be nil.
	Poll  time.Duration
	Renew func(answer R) time.Time
	// Recall returns what is known of an object at the start. nil means that nothing is.
	Recall func(object T) Recalled[R]
	// Timeout bounds each call. Both functions must return when ctx is done: an object whose call does not
	// return gets no other.
	Timeout time.Duration
	// Workers is the number of concurrent calls, without those that take longer than 100 ms, of which
	// there are at most a hundred. It is also the number of all calls for the objects of one namespace.
	Workers int
}

// Recalled is what an earlier process has left of an object. If it has asked, a call is not urgent, because a
// start that calls for all objects at once is a burst. If its answer stands, the first call is made at any time
// within Poll.
type Recalled[R any] struct {
	Asked, Answered bool
	Answer          R
}

// Answer is what is known of an object's call.
type Answer[R any] struct {
	// Known is true if there is an answer to the object's spec: Value.
	Known bool
	Value R
	// Err is why the last call failed, or nil. An answer from before stands.
	Err error
	// Undone is true if the external system no longer knows an object in deletion.
	Undone bool
	// Pending is true if a call that a user has requested is not over.
	Pending bool
}

// Objects are the objects that calls are made for.
type Objects[T metav1.Object] struct {
	// Read reads an object live.
	Read func(ctx context.Context, key cache.ObjectName) (T, error)
	// Same reports whether a call for one state of an object is one for the other, too. nil means that both
	// have the same UID and generation, and the deletion of both or of neither has begun.
	Same func(a, b T) bool
	// Changed is called with the key of an object of which Ask would return something new.
	Changed func(key cache.ObjectName)
	// Clock is the time. nil means the real one.
	Clock clock.WithTicker
}

func sameSpec[T metav1.Object](a, b T) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && isTerminating(a) == isTerminating(b)
}

func isTerminating(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }
