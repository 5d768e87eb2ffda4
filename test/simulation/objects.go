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

// The objects: their names, and the Foos of the tests.

package simulation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// namespace is the namespace of all objects.
const namespace = footest.Namespace

// objectID names an object of the namespace.
type objectID struct{ resource, name string }

func (id objectID) String() string { return id.resource + " " + id.name }

func fooID(name string) objectID { return idIn(footest.FooKind, name) }

func idIn(kind *footest.Kind, name string) objectID {
	return objectID{kind.Resource.Resource, name}
}

func idOf(object runtime.Object) objectID {
	return idIn(footest.KindOf(object), metaOf(object).GetName())
}

// kind returns the kind of an object that the API server has.
func (id objectID) kind() *footest.Kind { return footest.Served(id.resource) }

func (id objectID) groupResource() schema.GroupResource {
	return id.kind().Resource.GroupResource()
}

func metaOf(object runtime.Object) footest.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return accessor.(footest.Object)
}

func isTerminating(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

// controllerOf returns a child's reference to the Foo that controls it, or nil.
func controllerOf(child metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(child)
	if ref == nil || ref.Kind != "Foo" || ref.APIVersion != "samplecontroller.k8s.io/v1alpha1" {
		return nil
	}
	return ref
}

// newFoo returns a Foo that asks for a child of each kind. With 0 replicas it leaves the
// number to others.
func newFoo(name, childName string, replicas int32) *samplev1alpha1.Foo {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
	}
	footest.WithChildName(childName)(foo)
	if replicas > 0 {
		foo.Spec.Replicas = &replicas
	}
	for _, kind := range footest.Kinds {
		kind.Ask(foo)
	}
	return foo
}
