// SPDX-License-Identifier: Apache-2.0

// The comparison can fail: instead of a real API server it gets the model, with a defect.

package explore

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
	}}, "the event MODIFIED of Foo a differs"},
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

// sendAsUsers sends requests of users without a controller, and checks the model's answers: a Foo is
// created, written without a change, changed, written and deleted from an old version, and deleted in
// the foreground, twice.
func sendAsUsers(t *testing.T, s *scene) {
	t.Helper()
	x := explored{s.empty(), s}
	// send sends a request, and returns a copy of the Foo after it, which must have a generation.
	send := func(verb, subresource string, sent runtime.Object, reason metav1.StatusReason, generation int64) *samplev1alpha1.Foo {
		t.Helper()
		r := s.request(0, verb, subresource, sent)
		if _, err := x.serve(r); apierrors.ReasonForError(err) != reason || (err == nil) != (reason == "") {
			t.Fatalf("%s is answered with %v, want the reason %q", r, err, reason)
		}
		foo := copyOf(x.store[0].Object).(*samplev1alpha1.Foo)
		if foo.Generation != generation {
			t.Errorf("after %s the generation is %d, want %d", r, foo.Generation, generation)
		}
		return foo
	}
	asked := s.Owner.Asking("a", "web", 1)
	asked.SetFinalizers([]string{"example.com/first"})
	first := send("create", "", asked, "", 1)
	send("create", "", asked, metav1.StatusReasonAlreadyExists, 1)
	send("update", "", first, "", 1)
	changed := first.DeepCopy()
	changed.Spec.Replicas, changed.Status.Replicas = new(int32(2)), 3
	stored := send("update", "status", changed, "", 1)
	stored.Spec.Replicas, stored.Status.Replicas = new(int32(2)), 0
	stored = send("update", "", stored, "", 2)
	if *stored.Spec.Replicas != 2 || stored.Status.Replicas != 3 {
		t.Errorf("the writes of the status and of the spec stored %+v", stored)
	}
	send("update", "", first, metav1.StatusReasonConflict, 2)
	for _, only := range []*metav1.Preconditions{{ResourceVersion: &first.ResourceVersion}, metav1.NewUIDPreconditions("another")} {
		send("delete", "", &metav1.DeleteOptions{Preconditions: only}, metav1.StatusReasonConflict, 2)
	}
	foreground := &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
	send("delete", "", foreground, "", 3)
	held := send("delete", "", foreground, "", 3)
	held.Finalizers, held.DeletionTimestamp = []string{metav1.FinalizerDeleteDependents}, nil // no one can take it back
	held = send("update", "", held, "", 3)
	if held.DeletionTimestamp == nil || len(held.Finalizers) != 1 {
		t.Errorf("after its deletion, a Foo with a finalizer is %+v", held)
	}
	held.Finalizers = nil
	_, _ = x.serve(s.request(0, "update", "", held))
	if _, err := x.serve(s.request(0, "delete", "", foreground)); x.store[0] != nil || !apierrors.IsNotFound(err) {
		t.Errorf("the path leaves %v, and another deletion is answered with %v", x.store[0], err)
	}
}
