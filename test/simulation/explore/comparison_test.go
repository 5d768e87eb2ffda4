// SPDX-License-Identifier: Apache-2.0

// The comparison can fail: instead of a real API server it gets the model, with a defect.

package explore

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// modelServer is a model in the role of the real API server.
type modelServer struct {
	explored

	watches map[*rows.Kind]*watch.RaceFreeFakeWatcher
	defect  serverDefect
}

// serverDefect is what is wrong with a server: before changes what is sent, and after what it did.
type serverDefect struct {
	before func(sent *request)
	after  func(s *modelServer, sent *request, before int64)
}

func newModelServer(w World, d serverDefect) *modelServer {
	s, err := newScene(w)
	must(err)
	server := &modelServer{explored: explored{s.empty(), s}, watches: map[*rows.Kind]*watch.RaceFreeFakeWatcher{}, defect: d}
	server.version, server.created = 500, 50 // not those of the other model
	for _, kind := range s.kinds {
		server.watches[kind] = watch.NewRaceFreeFake()
	}
	return server
}

func (s *modelServer) watch(_ context.Context, kind *rows.Kind) (watch.Interface, error) {
	return s.watches[kind], nil
}

func (s *modelServer) do(_ context.Context, r model.Request) (rows.Object, error) {
	if r.Name == lastName {
		s.watches[r.Kind].Add(r.Object())
		return r.Object(), nil
	}
	if r.Sent != nil {
		r.Sent = r.Sent.DeepCopyObject()
	}
	sent, before := s.located(r), s.version
	if object, isObject := r.Sent.(rows.Object); isObject {
		object.SetDeletionTimestamp(nil) // the server keeps its own
	}
	if s.defect.before != nil {
		s.defect.before(sent)
	}
	returned, err := s.serve(sent)
	if s.defect.after != nil {
		s.defect.after(s, sent, before)
	}
	for _, e := range s.events[s.names[sent.slot].resource] {
		if e.version > before {
			s.watches[r.Kind].Action(e.verb, derived(e.object.Object))
		}
	}
	if returned != nil {
		returned = derived(returned)
	}
	return returned, err
}

// derived returns an object with what a real server derives from its fields.
func derived(stored rows.Object) rows.Object {
	object := copyOf(stored)
	footest.KindOf(object).Derive(object)
	return object
}

// serverDefects are those that the comparison must find, each with a part of what it must say.
var serverDefects = map[string]struct {
	serverDefect

	says string
}{
	"none": {},
	"a delete does not raise the generation": {serverDefect{after: func(s *modelServer, sent *request, before int64) {
		if stored := s.store[sent.slot]; sent.Verb == "delete" && stored != nil && s.version > before {
			stored.SetGeneration(stored.GetGeneration() - 1)
		}
	}}, "the event MODIFIED of Deployment api differs"},
	"the preconditions of a delete are ignored": {serverDefect{before: func(sent *request) {
		if options, ok := sent.Sent.(*metav1.DeleteOptions); ok {
			options.Preconditions = nil
		}
	}}, "the answer of the model is 409 Conflict about Deployment.apps api, and that of the server ok"},
	"an update without a change makes a version": {serverDefect{after: func(s *modelServer, sent *request, before int64) {
		if stored := s.store[sent.slot]; sent.Verb == "update" && stored != nil && s.version == before {
			s.commit(sent.slot, rows.Change{Event: watch.Modified, Object: copyOf(stored.Object)})
		}
	}}, `+  "resourceVersion": "10000`},
	"an event is lost": {serverDefect{after: func(s *modelServer, _ *request, before int64) {
		if s.version > before {
			s.events[0] = nil
		}
	}}, "the server does not send the event ADDED of Foo a"},
}

// TestTheComparisonFindsDefects walks along some paths of users, whose controller does nothing.
func TestTheComparisonFindsDefects(t *testing.T) {
	for name, test := range serverDefects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var found error
				for n := uint64(0); n < 10 && found == nil; n++ {
					found = walkBeside(t, test.serverDefect, n)
				}
				if (found == nil) != (test.says == "") || found != nil && !strings.Contains(found.Error(), test.says) {
					t.Errorf("the difference found is\n%v\nwant one that says: %s", found, test.says)
				}
			})
		})
	}
}

// walkBeside returns the difference that a path finds between the model and one with a defect.
func walkBeside(t *testing.T, d serverDefect, n uint64) error {
	t.Helper()
	s, err := newScene(pathWorlds(footest.FooOwner)[0])
	footest.Must(t, err)
	r, err := newRunner(s, acting(nil))
	footest.Must(t, err)
	p, err := newReplay(t.Context(), s, newModelServer(s.World, d))
	footest.Must(t, err)
	defer p.stop()
	footest.Must(t, r.walk(rand.New(rand.NewPCG(1, n)), stepsOfPath, p))
	if p.err == nil {
		p.compareEnd()
	}
	return p.err
}

func TestADeletionIsOfOneObject(t *testing.T) {
	another := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}
	if _, err := footest.FooKind.Delete(footest.Foo("a"), "a", another, metav1.Time{}); !apierrors.IsConflict(err) {
		t.Errorf("the answer is %v, want a conflict", err)
	}
}
