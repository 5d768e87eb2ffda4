// SPDX-License-Identifier: Apache-2.0

// The comparison can fail: in place of a real API server it gets the model, with a defect.

package explore

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// modelServer is a model in the role of the real API server.
type modelServer struct {
	explored

	watches map[*footest.Kind]*watch.RaceFreeFakeWatcher
	defect  serverDefect
}

// serverDefect is what is wrong with a server: before changes what is sent, and after what it did.
type serverDefect struct {
	before func(sent *request)
	after  func(s *modelServer, sent *request, before int64)
}

func newModelServer(s *scene, d serverDefect) *modelServer {
	server := &modelServer{explored: explored{s.empty(), s}, watches: map[*footest.Kind]*watch.RaceFreeFakeWatcher{}, defect: d}
	server.version, server.created = 500, 50 // not those of the other model
	for _, kind := range s.kinds {
		server.watches[kind] = watch.NewRaceFreeFake()
	}
	return server
}

func (s *modelServer) watch(_ context.Context, kind *footest.Kind) (watch.Interface, error) {
	return s.watches[kind], nil
}

func (s *modelServer) do(_ context.Context, r model.Request) (footest.Object, error) {
	if r.Name == lastName {
		s.watches[r.Kind].Add(r.Object())
		return r.Object(), nil
	}
	if r.Sent != nil {
		r.Sent = r.Sent.DeepCopyObject()
	}
	sent, before := s.located(r), s.version
	if s.defect.before != nil {
		s.defect.before(sent)
	}
	returned, err := s.serve(sent)
	if s.defect.after != nil {
		s.defect.after(s, sent, before)
	}
	for _, e := range s.events[s.names[sent.slot].resource] {
		if e.version > before {
			s.watches[r.Kind].Action(e.verb, copyOf(e.object.Object))
		}
	}
	return returned, err
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
	}}, "the event MODIFIED of Foo a differs"},
	"the preconditions of a delete are ignored": {serverDefect{before: func(sent *request) {
		if options, ok := sent.Sent.(*metav1.DeleteOptions); ok {
			options.Preconditions = nil
		}
	}}, "to delete Foo a the answer of the model is 409 Conflict about Foo.samplecontroller.k8s.io a, and that of the server ok"},
	"the version in an update is ignored": {serverDefect{before: func(sent *request) {
		if sent.Verb == "update" {
			sent.Object().SetResourceVersion("")
		}
	}}, "to update Foo a the answer of the model is 409 Conflict about foos.samplecontroller.k8s.io a, and that of the server ok"},
	"an update without a change makes a version": {serverDefect{after: func(s *modelServer, sent *request, before int64) {
		if stored := s.store[sent.slot]; sent.Verb == "update" && stored != nil && s.version == before {
			s.commit(sent.slot, footest.Change{Event: watch.Modified, Object: copyOf(stored.Object)})
		}
	}}, `+  "resourceVersion": "10000502"`},
	"an event is lost": {serverDefect{after: func(s *modelServer, _ *request, before int64) {
		if s.version > before {
			s.events[0] = nil
		}
	}}, "the server does not send the event ADDED of Foo a"},
	"an update of the status changes the spec": {serverDefect{before: func(sent *request) {
		if sent.Verb == "update" {
			sent.Subresource = ""
		}
	}}, "the object in the answer to update-status Foo a differs"},
}

func TestTheComparisonFindsDefects(t *testing.T) {
	for name, test := range serverDefects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := usersScene(t)
				r, err := newReplay(t.Context(), s, newModelServer(usersScene(t), test.serverDefect))
				if err != nil {
					t.Fatal(err)
				}
				sendAsUsers(t, s)
				r.compareEnd()
				r.stop()
				if (r.err == nil) != (test.says == "") || r.err != nil && !strings.Contains(r.err.Error(), test.says) {
					t.Errorf("the difference found is\n%v\nwant one that says: %s", r.err, test.says)
				}
			})
		})
	}
}

func usersScene(t *testing.T) *scene {
	t.Helper()
	s, err := newScene(complete(footest.FooOwner, World{Name: "users"})[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sendAsUsers sends requests of users without a controller: a Foo is created, written without a
// change, changed, written and deleted from an old version, and deleted in the foreground.
func sendAsUsers(t *testing.T, s *scene) {
	t.Helper()
	x := explored{s.empty(), s}
	send := func(verb, subresource string, sent runtime.Object) {
		_, _ = x.serve(s.request(0, verb, subresource, sent))
	}
	send("create", "", s.Owner.Asking("a", "web", 1))
	first := copyOf(x.store[0].Object)
	send("update", "", first)
	changed := copyOf(first)
	s.Owner.Resize(changed, 2)
	send("update", "status", changed)
	send("update", "", changed)
	send("update", "", first)
	send("delete", "", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new(first.GetResourceVersion())}})
	send("delete", "", &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	gone := copyOf(x.store[0].Object)
	gone.SetFinalizers(nil)
	send("update", "", gone)
	if x.store[0] != nil {
		t.Fatalf("the path leaves %v", x.store[0])
	}
}
