// SPDX-License-Identifier: Apache-2.0

// The API server as the clientsets of a controller see it, and the names of objects in it.

package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/wire"
)

// newClients returns clientsets that send their requests through a connection.
func newClients(conn *connection) Clients {
	kube, custom := wire.NewClients(server{conn})
	return Clients{Kubernetes: kube, Custom: custom}
}

// server serves a connection.
type server struct{ conn *connection }

// Do answers a request.
func (s server) Do(r *wire.Request) (runtime.Object, error) {
	id := objectID{r.Resource, r.Name}
	if err := s.unknown(r.Resource, r.Name); err != nil {
		return nil, err
	}
	switch {
	case r.Verb == "create" && r.Subresource == "":
		return s.conn.create(r.Ctx, r.Object)
	case r.Verb == "update":
		return s.conn.update(r.Ctx, r.Object, r.Subresource)
	case r.Verb == "patch":
		sent, err := s.patched(id, r)
		if err != nil {
			return nil, err
		}
		return s.conn.update(r.Ctx, sent, r.Subresource)
	case r.Verb == "delete":
		return nil, s.conn.delete(r.Ctx, id, r.DeleteOptions())
	case r.Verb == "get" && r.Subresource == "":
		return s.conn.get(r.Ctx, id)
	case r.Verb == "list":
		objects, version, err := s.conn.list(r.Ctx, r.Resource)
		return &wire.List{Items: objects, ResourceVersion: versionText(version)}, err
	}
	s.conn.cluster.violationf("%s: the simulation has no %s of %s", s.conn.cluster.test, r.Verb, id)
	return nil, apierrors.NewMethodNotSupported(id.groupResource(), r.Verb)
}

// patched returns the update that a patch amounts to. Its UID and resourceVersion keep it
// from being carried out on another object than the one that it was made from.
func (s server) patched(id objectID, r *wire.Request) (runtime.Object, error) {
	stored, err := s.conn.cluster.api.get(id)
	if err != nil {
		return nil, err
	}
	return footest.Patched(metaOf(stored), r.PatchType, r.Patch)
}

// Watch answers a watch.
func (s server) Watch(ctx context.Context, resource, resourceVersion string) (watch.Interface, error) {
	if err := s.unknown(resource, ""); err != nil {
		return nil, err
	}
	return s.conn.watch(ctx, resource, resourceVersion)
}

// unknown returns an error for a resource that the tests do not know.
func (s server) unknown(resource, name string) error {
	if footest.Served(resource) != nil {
		return nil
	}
	s.conn.cluster.violationf("%s", footest.UnknownResource(resource, s.conn.cluster.test))
	return apierrors.NewNotFound(corev1.Resource(resource), name)
}

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
