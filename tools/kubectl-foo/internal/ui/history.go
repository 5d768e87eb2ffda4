// SPDX-License-Identifier: Apache-2.0

// The condition Ready over time.

package ui

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
)

// maxStates is how many states of a Foo are kept.
const maxStates = 200

// state is the condition Ready from a time on. Status is "" without the condition.
type state struct {
	since                   time.Time
	status, reason, message string
}

func (s state) isLike(other state) bool {
	return s.status == other.status && s.reason == other.reason && s.message == other.message
}

// history has the states of Foos, as the watch saw them, and as the audit log has them.
type history struct {
	now func() time.Time

	mu      sync.Mutex
	watched map[types.UID][]state
	logged  map[types.UID][]state
}

func newHistory(now func() time.Time) *history {
	return &history{now: now, watched: map[types.UID][]state{}, logged: map[types.UID][]state{}}
}

// of returns the states of a Foo. Those of the audit log are more, and more exact; it has
// none if it has no response bodies.
func (h *history) of(uid types.UID) (states []state, isLogged bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if logged := h.logged[uid]; len(logged) > 0 {
		return slices.Clone(logged), true
	}
	return slices.Clone(h.watched[uid]), false
}

// handler returns a handler of an informer's Foos.
func (h *history) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if foo, ok := object.(*samplev1alpha1.Foo); ok {
				h.see(foo, isInInitialList)
			}
		},
		UpdateFunc: func(_, object any) {
			if foo, ok := object.(*samplev1alpha1.Foo); ok {
				h.see(foo, false)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if foo, ok := object.(*samplev1alpha1.Foo); ok {
				h.forget(foo.UID)
			}
		},
	}
}

func (h *history) see(foo *samplev1alpha1.Foo, wasThere bool) {
	seen := state{since: h.now()}
	condition := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	switch {
	case condition == nil && wasThere:
		seen.since = foo.CreationTimestamp.Time
	case condition != nil:
		seen.status, seen.reason, seen.message = string(condition.Status), condition.Reason, condition.Message
		if wasThere {
			seen.since = condition.LastTransitionTime.Time
		}
		if created := foo.CreationTimestamp.Time; seen.since.Before(created) {
			seen.since = created // the default condition is of 1970
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched[foo.UID] = added(h.watched[foo.UID], seen)
}

// log adds a write of the audit log.
func (h *history) log(w audit.Write) {
	if w.Resource != "foos" || !w.OK() || w.Response == nil || w.Response.Kind != "Foo" {
		return
	}
	seen := state{since: w.Done}
	if ready := w.Response.Status.Ready(); ready != nil {
		seen.status, seen.reason, seen.message = ready.Status, ready.Reason, ready.Message
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logged[w.Response.Metadata.UID] = added(h.logged[w.Response.Metadata.UID], seen)
}

func (h *history) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watched, uid)
	delete(h.logged, uid)
}

// added adds a state unless it is like the last.
func added(states []state, next state) []state {
	if n := len(states); n > 0 && states[n-1].isLike(next) {
		return states
	}
	states = append(states, next)
	if len(states) > maxStates {
		states = slices.Clone(states[len(states)-maxStates:])
	}
	return states
}
