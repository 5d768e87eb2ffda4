/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// fault is what happens at a moment: to a call, or to the arrival of an event.
type fault struct {
	name string
	call func(*request) (runtime.Object, error)
	// event returns false where the watch has ended.
	event func(*delivery) bool
}

// eventVerb is how the verbs of moments begin at which an event arrives.
const eventVerb = "event-"

// The faults with which two controllers work at once.
const (
	secondController = "second controller from here"
	overtaken        = "second controller while in the air"
)

// faultsAt returns the faults that can strike at a moment.
func faultsAt(m moment) []fault {
	switch m.verb {
	case "get":
		return callFaults
	case "create", "update":
		return slices.Concat(writeFaults, callFaults, admissionFaults)
	case "update-status", "delete":
		return slices.Concat(writeFaults, callFaults)
	case "list", "watch":
		return informerFaults
	}
	if strings.HasPrefix(m.verb, eventVerb) {
		return eventFaults
	}
	panic("no faults for " + m.verb)
}

var callFaults = []fault{
	{name: "crash before", call: func(r *request) (runtime.Object, error) {
		r.session.world.crash(r.session, asEver)
		return nil, errCrashed
	}},
	{name: "crash after", call: crashAfter(asEver)},
	{name: "crash after, begin with old Foos", call: crashAfter(beginWithOld("foos"))},
	{name: "crash after, begin with old Deployments", call: crashAfter(beginWithOld("deployments"))},
	{name: "429 Too Many Requests", call: func(*request) (runtime.Object, error) {
		return nil, apierrors.NewTooManyRequests("too many requests", 1)
	}},
	{name: "500 Internal Server Error", call: answer500},
	{name: "hang", call: func(r *request) (runtime.Object, error) {
		<-r.ctx.Done()
		return nil, r.ctx.Err()
	}},
	{name: "Foos seen late from here", call: staleFromHere("foos")},
	{name: "Deployments seen late from here", call: staleFromHere("deployments")},
	{name: secondController, call: func(r *request) (runtime.Object, error) {
		r.session.world.startController(asEver)
		return r.commit()
	}},
	{name: overtaken, call: func(r *request) (runtime.Object, error) {
		r.session.world.startController(asEver)
		if !r.pause(gauntletTimeout / 2) {
			return nil, r.ctx.Err()
		}
		return r.commitLate()
	}},
}

// writeFaults are those that make sense for a write only.
var writeFaults = []fault{
	{name: "409 Conflict", call: func(r *request) (runtime.Object, error) {
		return nil, apierrors.NewConflict(r.id.groupResource(), r.id.name, errors.New("the object has been modified"))
	}},
	{name: "timeout though applied", call: func(r *request) (runtime.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		<-r.ctx.Done()
		return nil, r.ctx.Err()
	}},
	{name: "connection lost though applied", call: func(r *request) (runtime.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		return nil, errors.New("read: connection reset by peer")
	}},
	{name: "applied after the retry", call: appliedLate(shortly)},
	{name: "applied after the next step", call: appliedLate(past)},
}

// informerFaults befall lists and watches, which have no deadline.
var informerFaults = []fault{
	callFaults[0],
	callFaults[1],
	callFaults[4],
	callFaults[5],
	{name: "slow", call: func(r *request) (runtime.Object, error) {
		if !r.pause(shortly) {
			return nil, r.ctx.Err()
		}
		return r.commit()
	}},
}

var eventFaults = []fault{
	{name: "crash", event: func(d *delivery) bool {
		d.session.world.crash(d.session, asEver)
		return false
	}},
	{name: "dropped until a relist", event: func(d *delivery) bool {
		d.session.mu.Lock()
		d.session.blind = true
		d.session.mu.Unlock()
		time.AfterFunc(past, d.expire)
		return true
	}},
	{name: "doubled", event: func(d *delivery) bool {
		return d.sendCopy(d.event.Object.DeepCopyObject()) && d.send()
	}},
	{name: "held for a moment", event: heldFor(shortly)},
	{name: "held past the next step", event: heldFor(past)},
	{name: "watch ends after it", event: func(d *delivery) bool {
		d.send()
		return false
	}},
	{name: "410 Gone instead of it", event: func(d *delivery) bool {
		d.sayExpired()
		return false
	}},
}

func answer500(*request) (runtime.Object, error) {
	return nil, apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
}

func crashAfter(prepare func(*session)) func(*request) (runtime.Object, error) {
	return func(r *request) (runtime.Object, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		r.session.world.crash(r.session, prepare)
		return nil, errCrashed
	}
}

// beginWithOld has a controller's first list of a resource answered by an API
// server whose own cache has not seen the current step yet.
func beginWithOld(resource string) func(*session) {
	return func(s *session) {
		s.listedAsOf[resource] = int(s.world.stepBegan.Load())
		s.hold(shortly, resource)
	}
}

// staleFromHere lets a call through and keeps events back from before it until
// after the next step.
func staleFromHere(resource string) func(*request) (runtime.Object, error) {
	return func(r *request) (runtime.Object, error) {
		r.session.hold(past, resource)
		return r.commit()
	}
}

// appliedLate is a write that its sender gives up and the API server carries out
// all the same, when the sender has tried again long since.
func appliedLate(after time.Duration) func(*request) (runtime.Object, error) {
	return func(r *request) (runtime.Object, error) {
		time.AfterFunc(after, func() { _, _ = r.commitLate() })
		return nil, context.DeadlineExceeded
	}
}

func heldFor(d time.Duration) func(*delivery) bool {
	return func(e *delivery) bool {
		e.session.hold(d, e.resource)
		return e.waitWhileHeld() && e.send()
	}
}

// pause returns false if the call is given up in between.
func (r *request) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}
