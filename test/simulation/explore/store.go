// SPDX-License-Identifier: Apache-2.0

// The API server: how a write changes the store, as in the simulation and in a real one,
// which conformance_test.go compares.

package explore

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
)

// explored is a state that a step is making, with what the step needs to know.
type explored struct {
	*state
	*scene
}

// serve answers a request. Everything that reaches the API server comes this way.
func (x explored) serve(sent *request) (footest.Object, error) {
	if x.real != nil {
		return x.real.serve(x, sent)
	}
	return x.process(sent)
}

// process returns the answer to a request. The caller must not change an object that it read.
func (x explored) process(sent *request) (footest.Object, error) {
	stored := x.stored(sent.slot)
	switch {
	case sent.Verb != "get":
		return x.write(sent, stored)
	case stored == nil:
		return nil, apierrors.NewNotFound(sent.Kind.Resource.GroupResource(), sent.Name)
	}
	return stored, nil
}

func (x explored) write(sent *request, stored footest.Object) (footest.Object, error) {
	change, err := sent.Write(stored, metav1.Time{Time: epoch})
	if err != nil {
		return nil, err
	}
	if change.Event == watch.Added {
		x.created++
		change.Object.SetUID(uidText(x.created))
	}
	return x.commit(sent.slot, change), nil
}

func copyOf(object runtime.Object) footest.Object { return metaOf(object.DeepCopyObject()) }

// stored returns an object, or nil.
func (x explored) stored(at slot) footest.Object {
	if stored := x.store[at]; stored != nil {
		return stored.Object
	}
	return nil
}

// commit stores a change, and returns the answer.
func (x explored) commit(at slot, change footest.Change) footest.Object {
	if change.Event == "" {
		return change.Answer
	}
	x.version++
	change.Object.SetResourceVersion(versionText(x.version))
	if x.real != nil {
		x.real.adopt(x, at, change)
	}
	was, changed := x.store[at], x.intern(newObject(at, change.Object))
	resource := x.names[at].resource
	x.events[resource] = append(slices.Clip(x.events[resource]), event{change.Event, changed, x.version})
	x.store[at] = changed
	if change.Event == watch.Deleted {
		x.store[at] = nil
	}
	x.remember(at, was)
	if change.Answer == change.Object {
		return changed.Object
	}
	return change.Answer
}

// remember notes which Foos had what they ask for, ready.
func (x explored) remember(at slot, was *object) {
	for _, owner := range x.slotsOf(0) {
		foo := x.store[owner]
		if at == owner && (foo == nil || was == nil || was.GetGeneration() != foo.GetGeneration() || was.GetUID() != foo.GetUID()) {
			x.wasReady[owner] = false
		}
		x.wasReady[owner] = x.wasReady[owner] || foo != nil && x.isReady(foo.Object)
	}
}

// isReady reports whether a Foo has all that it asks for, ready.
func (x explored) isReady(foo footest.Object) bool {
	objects := x.world().Objects
	return !slices.ContainsFunc(x.Owner.Kinds, func(kind *footest.Kind) bool {
		child := kind.Find(objects, kind.Name(foo))
		return kind.Wanted(foo) && (child == nil || oracle.Obstacle(kind, child, foo) != "")
	})
}

// trim forgets the events that no cache needs any more.
func (x explored) trim() {
	for resource, events := range x.events {
		unread := len(events)
		for i := range x.controllers {
			unread = min(unread, x.controllers[i].views[resource].position)
		}
		if x.crashes > 0 {
			unread = max(0, unread-x.Behind)
		}
		if unread == 0 {
			continue
		}
		for _, forgotten := range events[:unread] {
			x.base[forgotten.object.slot], x.baseVersions[resource] = forgotten.after(), forgotten.version
		}
		x.events[resource] = events[unread:]
		for i := range x.controllers {
			c := x.controller(i)
			c.views[resource].position -= unread
		}
	}
}
