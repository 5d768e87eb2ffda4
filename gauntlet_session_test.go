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
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// errCrashed is what a controller is told that has crashed, where a real one
// would be told nothing any more.
var errCrashed = fmt.Errorf("the controller has crashed: %w", context.Canceled)

// session is one controller's connection to the API server. All that can go
// wrong between the two goes wrong here.
type session struct {
	world *world
	name  string
	// ctx ends with the controller.
	ctx   context.Context
	crash context.CancelFunc

	mu   sync.Mutex
	dead bool
	// heldUntil is when the watches of a resource deliver again.
	heldUntil map[string]time.Time
	// listedAsOf is the version of which the first list of a resource is answered.
	listedAsOf map[string]int
	// blind sessions have or had an old cache by the will of a fault. They may
	// make again what they have removed, or write what is written already.
	blind bool
	// untold counts, for each Foo, changes of its readiness without an event.
	untold map[types.UID]int
	// unanswered is what it said in statuses of which it does not know whether
	// they are stored.
	unanswered []saying
}

// request is one call on its way. A fault decides whether and when it is
// committed, and what its caller is told.
type request struct {
	moment
	session *session
	ctx     context.Context
	apply   func(inspector) (runtime.Object, error)
}

// do sends a request on its way, past the fault that is meant for it.
func (s *session) do(ctx context.Context, verb string, id objectID, apply func(inspector) (runtime.Object, error)) (runtime.Object, error) {
	if s.ctx.Err() != nil {
		return nil, errCrashed
	}
	moment, strike := s.world.reach(verb, id)
	r := &request{moment: moment, session: s, ctx: ctx, apply: apply}
	if strike.call == nil {
		return r.commit()
	}
	s.world.note("%s: %s meets %q", s.name, moment, strike.name)
	object, err := strike.call(r)
	s.world.note("%s: %s was told %s", s.name, moment, answerOf(err))
	return object, err
}

// commit has the API server do what the request asks for. What has crashed
// commits nothing.
func (r *request) commit() (runtime.Object, error) {
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	if r.session.dead {
		return nil, errCrashed
	}
	object, err := r.apply(r.session.inspect(r.verb))
	r.session.world.committed(r, err)
	return object, err
}

// commitLate is commit for a request that has been in the air for so long that
// its sender can't be blamed for what became of it, and may be dead.
func (r *request) commitLate() (runtime.Object, error) {
	r.session.mu.Lock()
	object, err := r.apply(r.session.inspectLate)
	r.session.mu.Unlock()
	r.session.world.note("%s: %s, late -> %s", r.session.name, r.moment, answerOf(err))
	return object, err
}

func answerOf(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func (s *session) get(ctx context.Context, id objectID) (runtime.Object, error) {
	return s.do(ctx, "get", id, func(inspector) (runtime.Object, error) { return s.world.api.get(id) })
}

func (s *session) create(ctx context.Context, object runtime.Object) (runtime.Object, error) {
	return s.do(ctx, "create", idOf(object), func(inspect inspector) (runtime.Object, error) {
		admitted, err := s.world.admit(object)
		if err != nil {
			return nil, err
		}
		return s.world.api.create(admitted, inspect)
	})
}

func (s *session) update(ctx context.Context, object runtime.Object, subresource string) (runtime.Object, error) {
	verb := "update"
	if subresource != "" {
		verb += "-" + subresource
	}
	stored, err := s.do(ctx, verb, idOf(object), func(inspect inspector) (runtime.Object, error) {
		admitted, err := s.world.admit(object)
		if err != nil {
			return nil, err
		}
		return s.world.api.update(admitted, subresource, inspect)
	})
	s.noteAnswer(object, err)
	return stored, err
}

func (s *session) delete(ctx context.Context, id objectID, options metav1.DeleteOptions) error {
	_, err := s.do(ctx, "delete", id, func(inspect inspector) (runtime.Object, error) {
		return nil, s.world.api.delete(id, options, inspect)
	})
	return err
}

func (s *session) list(ctx context.Context, resource string) (objects []runtime.Object, version int, err error) {
	_, err = s.do(ctx, "list", objectID{resource: resource}, func(inspector) (runtime.Object, error) {
		version = s.world.api.version()
		if asOf, older := s.listedAsOf[resource]; older {
			version = asOf
			delete(s.listedAsOf, resource)
		}
		objects = s.world.api.list(resource, version)
		return nil, nil
	})
	return objects, version, err
}

func (s *session) watch(ctx context.Context, resource string, options metav1.ListOptions) (watch.Interface, error) {
	w, err := newAPIWatch(ctx, s, resource, options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	_, err = s.do(ctx, "watch", objectID{resource: resource}, func(inspector) (runtime.Object, error) { return nil, nil })
	if err != nil {
		return nil, err
	}
	go w.pump()
	return w, nil
}

// hold keeps back what the watches of some resources would deliver.
func (s *session) hold(d time.Duration, resources ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = true
	for _, resource := range resources {
		s.heldUntil[resource] = time.Now().Add(d)
	}
}

// held is how long a resource's watches are still held.
func (s *session) held(resource string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.heldUntil[resource])
}

// kill ends a controller at once: what it sends from now on is not committed.
func (s *session) kill() (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.dead
	s.dead = true
	s.crash()
	return was
}

// Event makes a session the recorder of its controller's events.
func (s *session) Event(object runtime.Object, _, reason, _ string) {
	name, uid := metaOf(object).GetName(), metaOf(object).GetUID()
	s.world.note("%s: event %s on Foo %s", s.name, reason, name)
	s.mu.Lock()
	s.untold[uid]--
	tooMany := s.untold[uid] < 0
	s.mu.Unlock()
	if tooMany && !s.tellsForTheDead(uid) && !s.seesItsOwn(uid, reason) {
		s.world.complain("%s sent the event %s on Foo %s without a transition", s.name, reason, name)
	}
}

// tellsForTheDead reports whether an event is that of a transition which another
// controller wrote that crashed before it could tell. To one whose answer was
// lost that transition is its own.
func (s *session) tellsForTheDead(uid types.UID) bool {
	s.world.mu.Lock()
	others := slices.Clone(s.world.sessions)
	s.world.mu.Unlock()
	if !slices.ContainsFunc(others, func(other *session) bool { return other != s && other.tookDown(uid) }) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untold[uid]++
	return true
}

// tookDown takes a transition from a controller that crashed before its event,
// and reports whether there was one.
func (s *session) tookDown(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead || s.untold[uid] == 0 {
		return false
	}
	s.untold[uid]--
	return true
}

// Eventf is not what the controller uses.
func (s *session) Eventf(runtime.Object, string, string, string, ...any) {
	panic(errors.ErrUnsupported)
}

// AnnotatedEventf is not what the controller uses.
func (s *session) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
	panic(errors.ErrUnsupported)
}
