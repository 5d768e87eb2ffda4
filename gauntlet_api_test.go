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

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// objectID names an object of the one namespace that the gauntlet is run in.
type objectID struct{ resource, name string }

func (id objectID) String() string { return id.resource + " " + id.name }

func fooID(name string) objectID        { return objectID{"foos", name} }
func deploymentID(name string) objectID { return objectID{"deployments", name} }

func idOf(object runtime.Object) objectID {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return fooID(foo.Name)
	}
	return deploymentID(object.(*appsv1.Deployment).Name)
}

func (id objectID) groupResource() schema.GroupResource {
	if id.resource == "foos" {
		return foosResource.GroupResource()
	}
	return deploymentsResource.GroupResource()
}

// firstVersion is the resourceVersion of a world in which nothing has happened.
const firstVersion = 1000

// change is what one write did to one object.
type change struct {
	kind   watch.EventType
	id     objectID
	object runtime.Object
	at     time.Time
}

// inspector looks at a write just before it is committed: at the object as it is
// stored and as it will be; one of them is nil in a create and a delete.
type inspector func(stored, next runtime.Object)

// apiServer is an API server of Foos and Deployments in memory. It has what a
// fake clientset has not, and what faults are made of: its whole history, so
// that a watch begins at a version and can lag, end and be taken up again, and a
// list can be answered as of earlier.
//
// An object in the history is never changed again. Its resourceVersion is its
// place there plus firstVersion: a real one has no version 0 to speak of.
type apiServer struct {
	mu      sync.Mutex
	history []change
	objects map[objectID]runtime.Object
	made    map[objectID]int
	// news is closed at the next change.
	news chan struct{}
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[objectID]runtime.Object{}, made: map[objectID]int{}, news: make(chan struct{})}
}

// next returns the history from a version on, and what tells of more.
func (a *apiServer) next(version int) (changes []change, more <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history[version:], a.news
}

func (a *apiServer) version() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.history)
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

// list returns the objects of a resource as they were at a version, by name.
func (a *apiServer) list(resource string, version int) []runtime.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	then := map[string]runtime.Object{}
	for _, change := range a.history[:version] {
		if change.id.resource != resource {
			continue
		}
		then[change.id.name] = change.object
		if change.kind == watch.Deleted {
			delete(then, change.id.name)
		}
	}
	list := make([]runtime.Object, 0, len(then))
	for _, object := range then {
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
	object, id := sent.DeepCopyObject(), idOf(sent)
	if _, exists := a.objects[id]; exists {
		return nil, apierrors.NewAlreadyExists(id.groupResource(), id.name)
	}
	inspect(nil, object)
	setDefaults(object)
	accessor := metaOf(object)
	a.made[id]++
	// The same in each run, whatever else happens in it.
	accessor.SetUID(types.UID(fmt.Sprintf("%s %s #%d", id.resource, id.name, a.made[id])))
	accessor.SetNamespace(namespace)
	accessor.SetGeneration(1)
	return a.commit(watch.Added, id, object), nil
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
	next := mergeWrite(stored.DeepCopyObject(), sent.DeepCopyObject(), subresource)
	metaOf(next).SetResourceVersion(found.GetResourceVersion())
	inspect(stored, next)
	if isTerminating(metaOf(next)) && len(metaOf(next).GetFinalizers()) == 0 {
		return a.commit(watch.Deleted, id, next), nil
	}
	if equality.Semantic.DeepEqual(stored, next) {
		return next, nil // a write that changes nothing makes no new version
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
	next := stored.DeepCopyObject()
	if options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationForeground {
		a.commit(watch.Deleted, id, next)
		return nil
	}
	if !isTerminating(found) {
		deleted := metav1.Now()
		metaOf(next).SetDeletionTimestamp(&deleted)
		metaOf(next).SetFinalizers([]string{metav1.FinalizerDeleteDependents})
		metaOf(next).SetGeneration(found.GetGeneration() + 1)
		a.commit(watch.Modified, id, next)
	}
	return nil
}

// commit makes a change part of the history, and returns a copy of the object.
func (a *apiServer) commit(kind watch.EventType, id objectID, object runtime.Object) runtime.Object {
	metaOf(object).SetResourceVersion(versionText(len(a.history) + 1))
	a.history = append(a.history, change{kind, id, object, time.Now()})
	a.objects[id] = object
	if kind == watch.Deleted {
		delete(a.objects, id)
	}
	close(a.news)
	a.news = make(chan struct{})
	return object.DeepCopyObject()
}

func versionText(place int) string { return strconv.Itoa(firstVersion + place) }

// setDefaults fills in some of what the API server fills in.
func setDefaults(object runtime.Object) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	one, ten := int32(1), int32(10)
	spec := &deployment.Spec
	if spec.Replicas == nil {
		spec.Replicas = &one
	}
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = &ten
	}
	if spec.Strategy.Type == "" {
		spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	for i := range spec.Template.Spec.Containers {
		spec.Template.Spec.Containers[i].TerminationMessagePath = "/dev/termination-log"
	}
}

// anything is the inspector of whoever is not under test.
func anything(_, _ runtime.Object) {}
