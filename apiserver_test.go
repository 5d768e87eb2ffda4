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

// The API server of the fixture, and methods that read and write its objects as a user or
// another controller would.

package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// fakeAPI makes fake clientsets behave like an API server in what a controller depends
// on: each write gets a new resourceVersion, an update with an old one is refused, spec
// and status are written separately, a changed spec raises the generation, and a delete
// checks its preconditions. Without versions, the protection against stale caches could
// not be tested.
type fakeAPI struct {
	mu      sync.Mutex
	version atomic.Int64
}

// serve puts the API in front of a clientset's object tracker.
func (a *fakeAPI) serve(fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	fake.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Resource == "events" {
			return false, nil, nil
		}
		object, err := a.create(tracker, action.(clienttesting.CreateAction))
		return true, object, err
	})
	fake.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := a.update(tracker, action.(clienttesting.UpdateAction))
		return true, object, err
	})
	fake.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, a.delete(tracker, action.(clienttesting.DeleteActionImpl))
	})
}

func (a *fakeAPI) create(tracker clienttesting.ObjectTracker, action clienttesting.CreateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := action.GetObject().DeepCopyObject()
	accessor := metaOf(object)
	a.stamp(accessor)
	accessor.SetUID(types.UID("uid-created-" + accessor.GetResourceVersion()))
	accessor.SetGeneration(1)
	if err := tracker.Create(action.GetResource(), object, action.GetNamespace()); err != nil {
		return nil, err
	}
	return object.DeepCopyObject(), nil
}

func (a *fakeAPI) update(tracker clienttesting.ObjectTracker, action clienttesting.UpdateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := action.GetObject().DeepCopyObject()
	accessor := metaOf(object)
	resource := action.GetResource()
	stored, err := tracker.Get(resource, action.GetNamespace(), accessor.GetName())
	if err != nil {
		return nil, err
	}
	if accessor.GetResourceVersion() != "" && accessor.GetResourceVersion() != metaOf(stored).GetResourceVersion() {
		return nil, apierrors.NewConflict(resource.GroupResource(), accessor.GetName(), errors.New("the object has been modified"))
	}
	merged := mergeWrite(stored.DeepCopyObject(), object, action.GetSubresource())
	if equality.Semantic.DeepEqual(stored, merged) {
		return merged, nil // a write that changes nothing does not change the version
	}
	a.stamp(metaOf(merged))
	return merged.DeepCopyObject(), tracker.Update(resource, merged, action.GetNamespace())
}

func (a *fakeAPI) delete(tracker clienttesting.ObjectTracker, action clienttesting.DeleteActionImpl) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, err := tracker.Get(action.GetResource(), action.GetNamespace(), action.Name)
	if err != nil {
		return err
	}
	found := metaOf(stored)
	if wanted := action.DeleteOptions.Preconditions; wanted != nil {
		if wanted.UID != nil && *wanted.UID != found.GetUID() || wanted.ResourceVersion != nil && *wanted.ResourceVersion != found.GetResourceVersion() {
			return apierrors.NewConflict(action.GetResource().GroupResource(), action.Name, errors.New("the precondition does not hold"))
		}
	}
	return tracker.Delete(action.GetResource(), action.GetNamespace(), action.Name)
}

// stamp gives an object the next resourceVersion. The versions start above those of the
// tests' own objects.
func (a *fakeAPI) stamp(object metav1.Object) {
	object.SetResourceVersion(strconv.FormatInt(1000+a.version.Add(1), 10))
}

// mergeWrite returns the stored object after a write: a write to the status changes only
// the status, any other write everything else.
func mergeWrite(stored, sent runtime.Object, subresource string) runtime.Object {
	switch stored := stored.(type) {
	case *appsv1.Deployment:
		sent := sent.(*appsv1.Deployment)
		if subresource == "status" {
			stored.Status = sent.Status
			return stored
		}
		sent.Status = stored.Status
		// The generation of a Deployment also counts its annotations.
		sent.Generation = nextGeneration(stored, equality.Semantic.DeepEqual(stored.Spec, sent.Spec) &&
			equality.Semantic.DeepEqual(stored.Annotations, sent.Annotations))
		return sent
	case *samplev1alpha1.Foo:
		sent := sent.(*samplev1alpha1.Foo)
		if subresource == "status" {
			stored.Status = sent.Status
			return stored
		}
		sent.Status = stored.Status
		sent.Generation = nextGeneration(stored, equality.Semantic.DeepEqual(stored.Spec, sent.Spec))
		return sent
	}
	panic(fmt.Sprintf("the fake API does not serve %T", stored))
}

func nextGeneration(stored metav1.Object, sameSpec bool) int64 {
	if sameSpec {
		return stored.GetGeneration()
	}
	return stored.GetGeneration() + 1
}

func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return accessor
}

// The following methods read and write objects as a user or another controller would. The
// fixture's list of writes does not contain their writes. Each write sets a new
// resourceVersion.

func (f *fixture) createFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) updateFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Update(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) deleteFoo(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.fooClient.Tracker().Delete(footest.FoosResource, footest.Namespace, name))
}

func (f *fixture) updateDeployment(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	f.api.stamp(deployment)
	footest.Must(t, f.kubeClient.Tracker().Update(footest.DeploymentsResource, deployment, footest.Namespace))
}

func (f *fixture) deleteDeployment(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.kubeClient.Tracker().Delete(footest.DeploymentsResource, footest.Namespace, name))
}

// deployment returns a Deployment from the API server.
func (f *fixture) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.DeploymentsResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*appsv1.Deployment)
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
