// SPDX-License-Identifier: Apache-2.0

package preview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// World holds the objects of a cluster that syncs read, beside the Foos.
type World struct {
	byName       map[schema.GroupVersionResource]map[cache.ObjectName]Object
	byController map[schema.GroupVersionResource]map[types.UID][]Object
}

// NewWorld returns a World without objects.
func NewWorld() *World {
	return &World{
		byName:       map[schema.GroupVersionResource]map[cache.ObjectName]Object{},
		byController: map[schema.GroupVersionResource]map[types.UID][]Object{},
	}
}

// Add adds an object of a resource.
func (w *World) Add(resource schema.GroupVersionResource, object Object) {
	if w.byName[resource] == nil {
		w.byName[resource], w.byController[resource] = map[cache.ObjectName]Object{}, map[types.UID][]Object{}
	}
	w.byName[resource][cache.MetaObjectToName(object)] = object
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		w.byController[resource][controller.UID] = append(w.byController[resource][controller.UID], object)
	}
}

// named returns the object of a name, or nil.
func (w *World) named(resource schema.GroupVersionResource, namespace, name string) Object {
	return w.byName[resource][cache.ObjectName{Namespace: namespace, Name: name}]
}

// ControlledBy returns the objects of a resource that a Foo controls.
func (w *World) ControlledBy(resource schema.GroupVersionResource, foo *samplev1alpha1.Foo) []Object {
	var controlled []Object
	for _, object := range w.byController[resource][foo.UID] {
		if plan.IsControlledBy(object, foo) {
			controlled = append(controlled, object)
		}
	}
	return controlled
}
