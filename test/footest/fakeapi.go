// SPDX-License-Identifier: Apache-2.0

// An API server behind fake clientsets.

package footest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// FakeAPI makes fake clientsets behave like an API server in what a controller depends
// on: each write gets a new resourceVersion, an update with an old one is refused, spec
// and status are written separately, a changed spec raises the generation, and a delete
// checks its preconditions. Without versions, the protection against stale caches could
// not be tested.
type FakeAPI struct {
	// Admit may change or refuse an object that is created or updated, as an admission
	// webhook. It may be nil.
	Admit func(operation string, sent Object) error

	mu      sync.Mutex
	version atomic.Int64
	patched sync.Map // the objects that patches asked for, by patch

	trackers []clienttesting.ObjectTracker
}

// Serve puts the API in front of a clientset's object tracker. A resource of which the
// tests know nothing fails the test.
func (a *FakeAPI) Serve(t testing.TB, fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	t.Helper()
	a.trackers = append(a.trackers, tracker)
	fake.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Resource == "events" {
			return false, nil, nil
		}
		object, err := a.create(tracker, action.(clienttesting.CreateAction))
		return true, object, err
	})
	fake.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := a.Update(tracker, action.(clienttesting.UpdateAction))
		return true, object, err
	})
	fake.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Resource == "events" {
			return false, nil, nil
		}
		object, err := a.patch(tracker, action.(clienttesting.PatchActionImpl))
		return true, object, err
	})
	fake.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, a.delete(tracker, action.(clienttesting.DeleteActionImpl))
	})
	fake.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		if resource.Resource == "events" || Served(resource.Resource) != nil {
			return false, nil, nil
		}
		t.Error(UnknownResource(resource.Resource, t.Name()))
		return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
	})
}

func (a *FakeAPI) create(tracker clienttesting.ObjectTracker, action clienttesting.CreateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent := copyOf(action.GetObject().(Object))
	if err := a.admit("create", sent); err != nil {
		return nil, err
	}
	change, err := Served(action.GetResource().Resource).Create(a.stored(tracker, action, sent.GetName()), sent)
	if err != nil {
		return nil, err
	}
	change.Object.SetUID(types.UID("uid-created-" + versionText(a.version.Load()+1)))
	return a.commit(tracker, action, change)
}

// Update carries out an update that was sent to a clientset.
func (a *FakeAPI) Update(tracker clienttesting.ObjectTracker, action clienttesting.UpdateAction) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent := action.GetObject().(Object)
	return a.update(tracker, action, a.stored(tracker, action, sent.GetName()), sent)
}

// patch carries out a patch as the update that it amounts to.
func (a *FakeAPI) patch(tracker clienttesting.ObjectTracker, action clienttesting.PatchActionImpl) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored := a.stored(tracker, action, action.Name)
	if stored == nil {
		return nil, apierrors.NewNotFound(action.GetResource().GroupResource(), action.Name)
	}
	sent, err := Patched(stored, action.PatchType, action.Patch)
	if err != nil {
		return nil, err
	}
	a.patched.Store(patchKey(action), copyOf(sent))
	return a.update(tracker, action, stored, sent)
}

// SentBy returns the object that a patch asked to store, or nil if there was none to
// change. A patch that a reactor answered before the API is applied to what is stored now.
func (a *FakeAPI) SentBy(action clienttesting.PatchAction) runtime.Object {
	if sent, known := a.patched.Load(patchKey(action)); known {
		return sent.(runtime.Object)
	}
	for _, tracker := range a.trackers {
		if stored, err := tracker.Get(action.GetResource(), action.GetNamespace(), action.GetName()); err == nil {
			if sent, err := Patched(stored.(Object), action.GetPatchType(), action.GetPatch()); err == nil {
				return sent
			}
		}
	}
	return nil
}

func patchKey(action clienttesting.PatchAction) string {
	return action.GetResource().Resource + " " + action.GetName() + " " + string(action.GetPatch())
}

func (a *FakeAPI) update(tracker clienttesting.ObjectTracker, action clienttesting.Action, stored, sent Object) (runtime.Object, error) {
	sent = copyOf(sent)
	if err := a.admit("update", sent); err != nil {
		return nil, err
	}
	change, err := Served(action.GetResource().Resource).Update(stored, sent, action.GetSubresource())
	if err != nil {
		return nil, err
	}
	return a.commit(tracker, action, change)
}

func (a *FakeAPI) admit(operation string, sent Object) error {
	if a.Admit == nil {
		return nil
	}
	return a.Admit(operation, sent)
}

func (a *FakeAPI) delete(tracker clienttesting.ObjectTracker, action clienttesting.DeleteActionImpl) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored := a.stored(tracker, action, action.Name)
	change, err := Served(action.GetResource().Resource).Delete(stored, action.Name, action.DeleteOptions, metav1.Now())
	if err == nil {
		_, err = a.commit(tracker, action, change)
	}
	return err
}

// commit stores a change, and returns the answer.
func (a *FakeAPI) commit(tracker clienttesting.ObjectTracker, action clienttesting.Action, change Change) (answer runtime.Object, err error) {
	resource, namespace := action.GetResource(), action.GetNamespace()
	if change.Event != "" {
		a.Stamp(change.Object)
	}
	switch change.Event {
	case watch.Added:
		err = tracker.Create(resource, change.Object, namespace)
	case watch.Modified:
		err = tracker.Update(resource, change.Object, namespace)
	case watch.Deleted:
		err = tracker.Delete(resource, namespace, change.Object.GetName())
	}
	if err != nil || change.Answer == nil {
		return nil, err
	}
	return change.Answer.DeepCopyObject(), nil
}

// stored returns an object, or nil.
func (a *FakeAPI) stored(tracker clienttesting.ObjectTracker, action clienttesting.Action, name string) Object {
	stored, err := tracker.Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return nil
	}
	return stored.(Object)
}

// Stamp gives an object the next resourceVersion. The versions start above those of the
// tests' own objects.
func (a *FakeAPI) Stamp(object metav1.Object) {
	object.SetResourceVersion(versionText(a.version.Add(1)))
}

// Version returns the newest resourceVersion.
func (a *FakeAPI) Version() string { return versionText(a.version.Load()) }

func versionText(version int64) string { return strconv.FormatInt(1000+version, 10) }
