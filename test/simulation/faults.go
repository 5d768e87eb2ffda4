// SPDX-License-Identifier: Apache-2.0

// The faults, grouped by the injection points at which they can happen.

package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/test/footest"
)

// fault replaces the normal handling of a call, or of an event that arrives.
type fault struct {
	name string
	call func(*request) (footest.Object, error)
	// event returns false if the watch ends.
	event func(*delivery) bool
}

// String returns the name, which rapid prints for a fault that it drew.
func (f fault) String() string { return f.name }

// eventVerb is the prefix of the verbs of injection points that are arrivals of events.
const eventVerb = "event-"

// The names of the faults in which two controllers work at the same time.
const (
	secondController = "second controller from here"
	overtaken        = "second controller while in flight"
)

// faultsAt returns the faults that can happen at an injection point.
func faultsAt(owner *footest.OwnerRow, point injectionPoint) []fault {
	callFaults := slices.Concat(staleFaults(owner), callFaults)
	switch point.verb {
	case "get":
		return callFaults
	case "create", "update":
		return slices.Concat(writeFaults, callFaults, admissionFaults)
	case "update-status", "delete":
		return slices.Concat(writeFaults, callFaults)
	case "list", "watch":
		return informerFaults
	}
	if strings.HasPrefix(point.verb, eventVerb) {
		return eventFaults
	}
	panic("no faults for " + point.verb)
}

var callFaults = []fault{
	crashBefore,
	crashAfter("crash after"),
	tooManyRequests,
	internalError,
	{name: "hang", call: func(r *request) (footest.Object, error) {
		<-r.ctx.Done()
		return nil, r.ctx.Err()
	}},
	{name: secondController, call: func(r *request) (footest.Object, error) {
		r.conn.cluster.startController()
		return r.commit()
	}},
	{name: overtaken, call: func(r *request) (footest.Object, error) {
		r.conn.cluster.startController()
		if !r.pause(shortDelay) {
			return nil, r.ctx.Err()
		}
		return r.commitLate()
	}},
}

// staleFaults returns the faults in which the cache of one resource is stale.
func staleFaults(owner *footest.OwnerRow) []fault {
	var faults []fault
	for _, kind := range append([]*footest.Kind{owner.Kind}, owner.Kinds...) {
		faults = append(faults,
			crashAfter("crash after, begin with old "+kind.Resource.Resource, beginWithOld(kind)),
			fault{name: "stale " + kind.Resource.Resource + " from here", call: staleFromHere(kind)})
	}
	return faults
}

// writeFaults can happen only to writes.
var writeFaults = []fault{
	{name: "409 Conflict", call: func(r *request) (footest.Object, error) {
		return nil, apierrors.NewConflict(r.Kind.Resource.GroupResource(), r.Name, errors.New("the object has been modified"))
	}},
	{name: "timeout although applied", call: func(r *request) (footest.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		<-r.ctx.Done()
		return nil, r.ctx.Err()
	}},
	{name: "connection lost although applied", call: func(r *request) (footest.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		return nil, errors.New("read: connection reset by peer")
	}},
	{name: "applied after the retry", call: appliedLate(shortDelay)},
	{name: "applied after the next step", call: appliedLate(longDelay)},
}

// informerFaults can happen to lists and watches, which have no deadline.
var informerFaults = []fault{
	crashBefore,
	crashAfter("crash after"),
	tooManyRequests,
	internalError,
	{name: "slow", call: func(r *request) (footest.Object, error) {
		if !r.pause(shortDelay) {
			return nil, r.ctx.Err()
		}
		return r.commit()
	}},
}

var eventFaults = []fault{
	{name: "crash", event: func(d *delivery) bool {
		d.conn.cluster.crash(d.conn)
		return false
	}},
	{name: "dropped until a relist", event: func(d *delivery) bool {
		d.conn.dropped(d.apiWatch)
		return true
	}},
	{name: "delivered twice", event: func(d *delivery) bool {
		return d.sendCopy(d.event.Object.DeepCopyObject()) && d.send()
	}},
	{name: "delayed a little", event: heldFor(shortDelay)},
	{name: "delayed past the next step", event: heldFor(longDelay)},
	{name: "watch ends after it", event: func(d *delivery) bool {
		d.send()
		return false
	}},
	{name: "410 Gone instead of it", event: func(d *delivery) bool {
		d.sendExpired()
		return false
	}},
}

var crashBefore = fault{name: "crash before", call: func(r *request) (footest.Object, error) {
	r.conn.cluster.crash(r.conn)
	return nil, errCrashed
}}

var tooManyRequests = fault{name: "429 Too Many Requests", call: func(*request) (footest.Object, error) {
	return nil, apierrors.NewTooManyRequests("too many requests", 1)
}}

var internalError = fault{name: "500 Internal Server Error", call: func(*request) (footest.Object, error) {
	return nil, apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
}}

// crashAfter commits a call, then crashes its controller. prepare changes the connection
// of the next controller.
func crashAfter(name string, prepare ...func(*connection)) fault {
	return fault{name: name, call: func(r *request) (footest.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		r.conn.cluster.crash(r.conn, prepare...)
		return nil, errCrashed
	}}
}

// beginWithOld makes a controller's first list of a kind show the state before the
// current step, like an API server whose own cache lags.
func beginWithOld(kind *footest.Kind) func(*connection) {
	return func(c *connection) {
		c.listedAsOf[kind] = int(c.cluster.stepBegan.Load())
		c.hold(kind, shortDelay)
	}
}

// staleFromHere commits a call and delays the events of a kind until after the next
// step.
func staleFromHere(kind *footest.Kind) func(*request) (footest.Object, error) {
	return func(r *request) (footest.Object, error) {
		r.conn.hold(kind, longDelay)
		return r.commit()
	}
}

// appliedLate answers a write with a timeout and commits it later, when its sender has
// long retried.
func appliedLate(after time.Duration) func(*request) (footest.Object, error) {
	return func(r *request) (footest.Object, error) {
		time.AfterFunc(after, func() { _, _ = r.commitLate() })
		return nil, context.DeadlineExceeded
	}
}

func heldFor(d time.Duration) func(*delivery) bool {
	return func(e *delivery) bool {
		e.conn.hold(e.kind, d)
		return e.waitWhileHeld() && e.send()
	}
}
