// SPDX-License-Identifier: Apache-2.0

// An API server behind fake clientsets.

package footest

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
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
	// Others are kinds that no row of the program is about.
	Others []*Kind

	mu      sync.Mutex
	version atomic.Int64
	patched sync.Map // the objects that patches asked for, by patch
	deleted sync.Map // the resourceVersions of deletions, by UID
}

// Serve puts the API in front of a clientset's object tracker. A resource of which the
// tests know nothing fails the test.
func (a *FakeAPI) Serve(t testing.TB, fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	t.Helper()
	fake.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource, isRead := action.GetResource(), slices.Contains([]string{"get", "list", "watch"}, action.GetVerb())
		switch isKnown := a.served(resource.Resource) != nil; {
		case resource.Resource == "events", isKnown && isRead:
			return false, nil, nil
		case !isKnown:
			t.Error(UnknownResource(resource.Resource, t.Name()))
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
		}
		answer, err := a.Write(tracker, action)
		return true, answer, err
	})
	fake.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := tracker.Watch(action.GetResource(), action.GetNamespace(), action.(clienttesting.WatchActionImpl).ListOptions)
		if err != nil {
			return true, nil, err
		}
		return true, a.withVersionsOfDeletions(events), nil
	})
}

func (a *FakeAPI) served(resource string) *Kind {
	for _, kind := range a.Others {
		if kind.Resource.Resource == resource {
			return kind
		}
	}
	return Served(resource)
}

// withVersionsOfDeletions makes the event of a deletion carry the version of the deletion, where
// the tracker sends that of the object's last change.
func (a *FakeAPI) withVersionsOfDeletions(events watch.Interface) watch.Interface {
	sent := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(sent)
	go func() {
		<-proxy.StopChan()
		events.Stop() // which closes its channel
	}()
	go func() {
		for event := range events.ResultChan() {
			if object, ok := event.Object.(Object); ok && event.Type == watch.Deleted {
				if version, known := a.deleted.Load(object.GetUID()); known {
					object.SetResourceVersion(version.(string))
				}
			}
			select {
			case sent <- event:
			case <-proxy.StopChan():
			}
		}
	}()
	return proxy
}

// Delete deletes an object, as a user or another controller does.
func (a *FakeAPI) Delete(tracker clienttesting.ObjectTracker, resource schema.GroupVersionResource, namespace, name string) error {
	object, err := tracker.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	a.deleted.Store(object.(Object).GetUID(), versionText(a.version.Add(1)))
	return tracker.Delete(resource, namespace, name)
}

// Write carries out a write that was sent to a clientset, and returns the answer.
func (a *FakeAPI) Write(tracker clienttesting.ObjectTracker, action clienttesting.Action) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change, err := a.change(tracker, action)
	if err != nil {
		return nil, err
	}
	return a.commit(tracker, action, change)
}

// change returns what a write does. A patch is the update that it amounts to.
func (a *FakeAPI) change(tracker clienttesting.ObjectTracker, action clienttesting.Action) (change rows.Change, err error) {
	kind := a.served(action.GetResource().Resource)
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		sent := rows.CopyOf(action.Object.(Object))
		if err := a.admit("create", sent); err != nil {
			return change, err
		}
		if change, err = kind.Create(a.stored(tracker, action, sent.GetName()), sent); err == nil {
			change.Object.SetUID(types.UID("uid-created-" + versionText(a.version.Load()+1)))
		}
		return change, err
	case clienttesting.UpdateActionImpl:
		sent := rows.CopyOf(action.Object.(Object))
		return a.update(kind, a.stored(tracker, action, sent.GetName()), sent, action.Subresource)
	case clienttesting.PatchActionImpl:
		stored := a.stored(tracker, action, action.Name)
		if stored == nil {
			return change, apierrors.NewNotFound(action.GetResource().GroupResource(), action.Name)
		}
		sent, err := rows.Patched(stored, action.PatchType, action.Patch)
		if err != nil {
			return change, err
		}
		a.patched.Store(patchKey(action), rows.CopyOf(sent))
		return a.update(kind, stored, sent, action.Subresource)
	case clienttesting.DeleteActionImpl:
		return kind.Delete(a.stored(tracker, action, action.Name), action.Name, action.DeleteOptions, metav1.Now())
	}
	return change, apierrors.NewMethodNotSupported(action.GetResource().GroupResource(), action.GetVerb())
}

// SentBy returns the object that a patch asked to store, or nil if there was none to
// change.
func (a *FakeAPI) SentBy(action clienttesting.PatchAction) runtime.Object {
	sent, known := a.patched.Load(patchKey(action))
	if !known {
		return nil
	}
	return sent.(runtime.Object)
}

func patchKey(action clienttesting.PatchAction) string {
	return action.GetResource().Resource + " " + action.GetName() + " " + string(action.GetPatch())
}

func (a *FakeAPI) update(kind *Kind, stored, sent Object, subresource string) (rows.Change, error) {
	if err := a.admit("update", sent); err != nil {
		return rows.Change{}, err
	}
	return kind.Update(stored, sent, subresource)
}

func (a *FakeAPI) admit(operation string, sent Object) error {
	if a.Admit == nil {
		return nil
	}
	return a.Admit(operation, sent)
}

// commit stores a change, and returns the answer.
func (a *FakeAPI) commit(tracker clienttesting.ObjectTracker, action clienttesting.Action, change rows.Change) (answer runtime.Object, err error) {
	resource, namespace := action.GetResource(), action.GetNamespace()
	if change.Event != "" && change.Event != watch.Deleted {
		a.Stamp(change.Object)
	}
	switch change.Event {
	case watch.Added:
		err = tracker.Create(resource, change.Object, namespace)
	case watch.Modified:
		err = tracker.Update(resource, change.Object, namespace)
	case watch.Deleted:
		err = a.Delete(tracker, resource, namespace, change.Object.GetName())
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
