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

// How the tests write objects as a user or another controller would, and read them. The
// fixture's list of writes does not contain these writes. Each sets a new resourceVersion.

package main

import (
	"testing"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// children is the resource of the children, and these are the writes of them.
var (
	children    = footest.Primary.Resource.Resource
	createChild = "create " + children
	updateChild = "update " + children
	deleteChild = "delete " + children
	// conflict and failed are the reasons for which a user has to do something.
	conflict = footest.Primary.Kind + "Conflict"
	failed   = footest.Primary.Kind + "Failed"
)

func (f *fixture) createFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) updateFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Update(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) deleteFoo(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.fooClient.Tracker().Delete(footest.FoosResource, footest.Namespace, name))
}

func (f *fixture) updateChild(t *testing.T, child footest.Object) {
	t.Helper()
	f.api.Stamp(child)
	footest.Must(t, f.kubeClient.Tracker().Update(footest.Primary.Resource, child, footest.Namespace))
}

func (f *fixture) deleteChild(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.kubeClient.Tracker().Delete(footest.Primary.Resource, footest.Namespace, name))
}

// storedChild returns a child from the API server.
func (f *fixture) storedChild(t *testing.T, name string) footest.Object {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.Primary.Resource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(footest.Object)
}

// storedFoo returns a Foo from the API server.
func (f *fixture) storedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := f.fooClient.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) cachedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	foo, err := f.foos.Foos(footest.Namespace).Get(name)
	footest.Must(t, err)
	return foo
}

// drift changes all fields of a child that its Foo owns, as another controller does.
func (f *fixture) drift(t *testing.T, name string) {
	t.Helper()
	drifted := f.storedChild(t, name).DeepCopyObject().(footest.Object)
	footest.Drifted(drifted)
	f.updateChild(t, drifted)
}

// settle does to a child what the cluster's own controllers do, until it is at rest.
func (f *fixture) settle(t *testing.T, name string) {
	t.Helper()
	settled := f.storedChild(t, name).DeepCopyObject().(footest.Object)
	for footest.Primary.Advance(settled) {
	}
	f.updateChild(t, settled)
}

// afterCreate returns the condition Ready of a Foo whose child has just been created.
func afterCreate() string {
	foo := footest.Foo("a")
	if footest.Primary.Unready(footest.Primary.Created(footest.Primary.New(foo))) != "" {
		return "False Progressing of 1"
	}
	return "True Available of 1"
}

// storeAt is an informer's store at a resourceVersion.
type storeAt string

func (s storeAt) LastStoreSyncResourceVersion() string { return string(s) }

// neverDone is the DoneChecker of a cache that never syncs.
type neverDone struct{}

func (neverDone) Name() string          { return "never" }
func (neverDone) Done() <-chan struct{} { return nil }
