// SPDX-License-Identifier: Apache-2.0

// The API server as the clientsets of a controller see it.

package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/wire"
)

// server serves a connection.
type server struct{ conn *connection }

// Do answers a request.
func (s server) Do(sent *wire.Request) (runtime.Object, error) {
	kind, err := s.kindOf(sent.Resource, sent.Name)
	if err != nil {
		return nil, err
	}
	r := &request{conn: s.conn, ctx: sent.Ctx, Request: sent.Request}
	switch r.Action() {
	case "get", "create", "update", "update-status", "delete":
	case "patch", "patch-status":
		// The update that the patch amounts to. Its UID and resourceVersion keep it from being
		// carried out on another object than the one that it was made from.
		stored, err := s.conn.cluster.api.get(objectID{kind, sent.Name})
		if err != nil {
			return nil, err
		}
		if r.Sent, err = footest.Patched(stored, sent.PatchType, sent.Patch); err != nil {
			return nil, err
		}
		r.Verb = "update"
	case "list":
		objects, version, err := s.conn.list(sent.Ctx, kind)
		return &wire.List{Items: objects, ResourceVersion: versionText(version)}, err
	default:
		s.conn.cluster.violationf("%s: the simulation has no %s of %s", s.conn.cluster.test, sent.Verb, objectID{kind, sent.Name})
		return nil, apierrors.NewMethodNotSupported(kind.Resource.GroupResource(), sent.Verb)
	}
	stored, err := s.conn.do(r)
	if r.Verb == "update" {
		s.conn.noteUnanswered(r.Object(), err)
	}
	return stored, err
}

// Watch answers a watch.
func (s server) Watch(ctx context.Context, resource, resourceVersion string) (watch.Interface, error) {
	kind, err := s.kindOf(resource, "")
	if err != nil {
		return nil, err
	}
	return s.conn.watch(ctx, kind, resourceVersion)
}

// kindOf returns the kind of a resource, or an error if the tests do not know it.
func (s server) kindOf(resource, name string) (*footest.Kind, error) {
	if kind := footest.Served(resource); kind != nil {
		return kind, nil
	}
	s.conn.cluster.violationf("%s", footest.UnknownResource(resource, s.conn.cluster.test))
	return nil, apierrors.NewNotFound(corev1.Resource(resource), name)
}
