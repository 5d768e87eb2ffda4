// SPDX-License-Identifier: Apache-2.0

// The API server: objects, resourceVersions, preconditions, and the history for watches
// and old lists.

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/internal/footest"
)

// firstVersion is the resourceVersion of an empty history. A real API server never
// returns version 0.
const firstVersion = 1000

// change records one write to one object.
type change struct {
	kind   watch.EventType
	id     objectID
	object runtime.Object
	at     time.Time
}

// inspector inspects a write just before it is committed. stored is the object before the
// write, nil for a create; next is the object after it, nil for a delete.
type inspector func(stored, next runtime.Object)

// noInspection is the inspector of writes that are not the controller's.
func noInspection(_, _ runtime.Object) {}

// apiServer is an API server of Foos and their children in memory. Unlike a fake clientset
// it keeps its history: a watch begins at a version, and it can lag, end and be resumed;
// a list can be answered from an old version.
//
// An object in the history never changes. Its resourceVersion is firstVersion plus its
// index there, from 1.
type apiServer struct {
	mu      sync.Mutex
	history []change
	objects map[objectID]runtime.Object
	// created counts the objects that were created with a name.
	created map[objectID]int
	// changed is closed at the next change.
	changed chan struct{}
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[objectID]runtime.Object{}, created: map[objectID]int{}, changed: make(chan struct{})}
}

// next returns the history after a version, and a channel that is closed at the next
// change.
func (a *apiServer) next(version int) (changes []change, more <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history[version:], a.changed
}

func (a *apiServer) version() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.history)
}

// latest returns the version and the time of the last change of a resource, or 0.
func (a *apiServer) latest(resource string) (version int, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, change := range slices.Backward(a.history) {
		if change.id.resource == resource {
			return i + 1, change.at
		}
	}
	return 0, time.Time{}
}

func (a *apiServer) get(id objectID) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok {
		return nil, apierrors.NewNotFound(id.groupResource(), id.name)
	}
	return stored.DeepCopyObject(), nil
}

// list returns the objects of a resource as they were at a version, sorted by name.
func (a *apiServer) list(resource string, version int) []runtime.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	present := map[string]runtime.Object{}
	for _, change := range a.history[:version] {
		if change.id.resource != resource {
			continue
		}
		present[change.id.name] = change.object
		if change.kind == watch.Deleted {
			delete(present, change.id.name)
		}
	}
	list := make([]runtime.Object, 0, len(present))
	for _, object := range present {
		list = append(list, object.DeepCopyObject())
	}
	slices.SortFunc(list, func(a, b runtime.Object) int {
		return strings.Compare(metaOf(a).GetName(), metaOf(b).GetName())
	})
	return list
}

func (a *apiServer) create(sent runtime.Object, inspect inspector) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := idOf(sent)
	if _, exists := a.objects[id]; exists {
		return nil, apierrors.NewAlreadyExists(id.groupResource(), id.name)
	}
	inspect(nil, sent)
	accessor := id.kind().Created(metaOf(sent))
	a.created[id]++
	// The UID is the same in each run, whatever else differs.
	accessor.SetUID(types.UID(fmt.Sprintf("%s %s #%d", id.resource, id.name, a.created[id])))
	accessor.SetNamespace(namespace)
	return a.commit(watch.Added, id, accessor), nil
}

func (a *apiServer) update(sent runtime.Object, subresource string, inspect inspector) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, wants := idOf(sent), metaOf(sent)
	stored, ok := a.objects[id]
	if !ok {
		return nil, apierrors.NewNotFound(id.groupResource(), id.name)
	}
	found := metaOf(stored)
	if wants.GetResourceVersion() != "" && wants.GetResourceVersion() != found.GetResourceVersion() ||
		wants.GetUID() != "" && wants.GetUID() != found.GetUID() {
		return nil, apierrors.NewConflict(id.groupResource(), id.name, errors.New("the object has been modified"))
	}
	next := id.kind().Updated(found, wants, subresource)
	inspect(stored, next)
	if footest.IsGone(next) {
		// The object is deleted as it was: the update is not stored, but answered.
		a.commit(watch.Deleted, id, stored.DeepCopyObject())
		return next, nil
	}
	if equality.Semantic.DeepEqual(stored, next) {
		return next, nil // a write that changes nothing does not change the version
	}
	return a.commit(watch.Modified, id, next), nil
}

func (a *apiServer) delete(id objectID, options metav1.DeleteOptions, inspect inspector) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok {
		return apierrors.NewNotFound(id.groupResource(), id.name)
	}
	found := metaOf(stored)
	if only := options.Preconditions; only != nil {
		if only.UID != nil && *only.UID != found.GetUID() || only.ResourceVersion != nil && *only.ResourceVersion != found.GetResourceVersion() {
			return apierrors.NewConflict(id.groupResource(), id.name, errors.New("the precondition does not hold"))
		}
	}
	inspect(stored, nil)
	switch next := id.kind().Terminating(found, options, metav1.Now()); {
	case next == nil:
		a.commit(watch.Deleted, id, stored.DeepCopyObject())
	case !equality.Semantic.DeepEqual(stored, next):
		a.commit(watch.Modified, id, next)
	}
	return nil
}

// raiseGeneration does what an edit of the spec does that is taken back at once.
func (a *apiServer) raiseGeneration(id objectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok || id.kind().Generation == nil {
		return
	}
	next := metaOf(stored.DeepCopyObject())
	next.SetGeneration(next.GetGeneration() + 2)
	a.commit(watch.Modified, id, next)
}

// commit appends a change to the history, and returns a copy of the object.
func (a *apiServer) commit(kind watch.EventType, id objectID, object runtime.Object) runtime.Object {
	metaOf(object).SetResourceVersion(versionText(len(a.history) + 1))
	a.history = append(a.history, change{kind, id, object, time.Now()})
	a.objects[id] = object
	if kind == watch.Deleted {
		delete(a.objects, id)
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return object.DeepCopyObject()
}

// versionText returns the resourceVersion of an index in the history.
func versionText(version int) string { return strconv.Itoa(firstVersion + version) }

// parseVersion is the inverse of versionText.
func parseVersion(resourceVersion string) (int, error) {
	version, err := strconv.Atoi(resourceVersion)
	return version - firstVersion, err
}
