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
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// serve puts the API in front of a clientset's object tracker. A resource of which the
// tests know nothing fails the test.
func (a *fakeAPI) serve(t testing.TB, fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	t.Helper()
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
	fake.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		if resource.Resource == "events" || footest.Served(resource.Resource) != nil {
			return false, nil, nil
		}
		t.Error(footest.UnknownResource(resource.Resource, t.Name()))
		return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
	})
}

func (a *fakeAPI) create(tracker clienttesting.ObjectTracker, action clienttesting.CreateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := footest.Served(action.GetResource().Resource).Created(action.GetObject().(footest.Object))
	a.stamp(object)
	object.SetUID(types.UID("uid-created-" + object.GetResourceVersion()))
	if err := tracker.Create(action.GetResource(), object, action.GetNamespace()); err != nil {
		return nil, err
	}
	return object.DeepCopyObject(), nil
}

func (a *fakeAPI) update(tracker clienttesting.ObjectTracker, action clienttesting.UpdateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent, resource := action.GetObject().(footest.Object), action.GetResource()
	stored, err := a.stored(tracker, action, sent.GetName())
	if err != nil {
		return nil, err
	}
	if sent.GetResourceVersion() != "" && sent.GetResourceVersion() != stored.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource.GroupResource(), sent.GetName(), errors.New("the object has been modified"))
	}
	next := footest.Served(resource.Resource).Updated(stored, sent, action.GetSubresource())
	switch {
	case footest.IsGone(next):
		return next, tracker.Delete(resource, action.GetNamespace(), next.GetName())
	case equality.Semantic.DeepEqual(stored, next):
		return next, nil // a write that changes nothing does not change the version
	}
	a.stamp(next)
	return next.DeepCopyObject(), tracker.Update(resource, next, action.GetNamespace())
}

func (a *fakeAPI) delete(tracker clienttesting.ObjectTracker, action clienttesting.DeleteActionImpl) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource := action.GetResource()
	stored, err := a.stored(tracker, action, action.Name)
	if err != nil {
		return err
	}
	if wanted := action.DeleteOptions.Preconditions; wanted != nil {
		if wanted.UID != nil && *wanted.UID != stored.GetUID() || wanted.ResourceVersion != nil && *wanted.ResourceVersion != stored.GetResourceVersion() {
			return apierrors.NewConflict(resource.GroupResource(), action.Name, errors.New("the precondition does not hold"))
		}
	}
	next := footest.Served(resource.Resource).Terminating(stored, action.DeleteOptions, metav1.Now())
	switch {
	case next == nil:
		return tracker.Delete(resource, action.GetNamespace(), action.Name)
	case equality.Semantic.DeepEqual(stored, next):
		return nil
	}
	a.stamp(next)
	return tracker.Update(resource, next, action.GetNamespace())
}

func (a *fakeAPI) stored(tracker clienttesting.ObjectTracker, action clienttesting.Action, name string) (footest.Object, error) {
	stored, err := tracker.Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return nil, err
	}
	return stored.(footest.Object), nil
}

// stamp gives an object the next resourceVersion. The versions start above those of the
// tests' own objects.
func (a *fakeAPI) stamp(object metav1.Object) {
	object.SetResourceVersion(strconv.FormatInt(1000+a.version.Add(1), 10))
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
