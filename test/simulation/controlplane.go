// SPDX-License-Identifier: Apache-2.0

// The cluster's own controllers, as far as they affect a controller of Foos.

package simulation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// controlPlaneInterval is the time between two writes of the control plane. In a bubble,
// time passes only while all goroutines wait. So each write takes effect before the next
// one, and each run makes the same calls.
const controlPlaneInterval = 100 * time.Millisecond

// controlPlane is the garbage collector, and the controllers of the children, which only
// write the status.
type controlPlane struct{ *cluster }

func (p controlPlane) run() {
	for {
		_, more := p.api.next(p.api.version())
		if !p.act() {
			select {
			case <-more:
			case <-p.ctx.Done():
				return
			}
		}
		select {
		case <-time.After(controlPlaneInterval):
		case <-p.ctx.Done():
			return
		}
	}
}

// act makes one write, and reports whether one was needed.
func (p controlPlane) act() bool {
	return p.collectGarbage() || p.finishForegroundDeletion() || p.advanceStatuses()
}

// children returns the objects of all kinds of children.
func (c *cluster) children() []footest.Object {
	var children []footest.Object
	for _, kind := range c.owner.Kinds {
		for _, object := range c.api.list(kind.Resource.Resource, c.api.version()) {
			children = append(children, metaOf(object))
		}
	}
	return children
}

// collectGarbage deletes a child whose controlling Foo is deleted or in foreground
// deletion.
func (p controlPlane) collectGarbage() bool {
	for _, child := range p.children() {
		ref := controllerOf(child)
		if ref == nil || isTerminating(child) {
			continue
		}
		if foo := p.foo(ref.Name); foo != nil && foo.GetUID() == ref.UID && !inForegroundDeletion(foo) {
			continue
		}
		return p.wrote("garbage collector", "delete", child,
			p.api.delete(idOf(child), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(child.GetUID()))}, noInspection))
	}
	return false
}

func inForegroundDeletion(foo footest.Object) bool {
	return isTerminating(foo) && slices.Contains(foo.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// finishForegroundDeletion lets a Foo in foreground deletion go when it has no child left.
func (p controlPlane) finishForegroundDeletion() bool {
	for _, object := range p.api.list(p.owner.Resource.Resource, p.api.version()) {
		foo := metaOf(object)
		isChild := func(child footest.Object) bool { return metav1.IsControlledBy(child, foo) }
		if inForegroundDeletion(foo) && !slices.ContainsFunc(p.children(), isChild) {
			foo.SetFinalizers(slices.DeleteFunc(foo.GetFinalizers(), func(finalizer string) bool { return finalizer == metav1.FinalizerDeleteDependents }))
			return p.write("garbage collector", foo, "")
		}
	}
	return false
}

func (p controlPlane) advanceStatuses() bool {
	for _, child := range p.children() {
		if kind := footest.KindOf(child); kind.Advance(child) {
			return p.write(kind.Kind+" controller", child, "status")
		}
	}
	return false
}

// foo returns a Foo, or nil.
func (p controlPlane) foo(name string) footest.Object {
	object, err := p.api.get(p.ownerID(name))
	if err != nil {
		return nil
	}
	return metaOf(object)
}

func (p controlPlane) write(who string, object runtime.Object, subresource string) bool {
	_, err := p.api.update(object, subresource, noInspection)
	return p.wrote(who, "update", object, err)
}

// wrote traces a write. It returns true even if the write failed, because the next act
// repeats it.
func (p controlPlane) wrote(who, verb string, object runtime.Object, err error) bool {
	p.tracef("%s: %s %s -> %s", who, verb, idOf(object), resultOf(err))
	return true
}
