// SPDX-License-Identifier: Apache-2.0

// The objects and their names.

package simulation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/test/footest"
)

// namespace is the namespace of all objects.
const namespace = footest.Namespace

// objectID names an object of the namespace.
type objectID struct{ resource, name string }

func (id objectID) String() string { return id.resource + " " + id.name }

// ownerID names an owner.
func (c *cluster) ownerID(name string) objectID { return idIn(c.owner.Kind, name) }

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
func controllerOf(child footest.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(child)
	if ref == nil || ref.Kind != footest.KindOf(child).Owner().Kind.Kind || ref.APIVersion != "samplecontroller.k8s.io/v1alpha1" {
		return nil
	}
	return ref
}
