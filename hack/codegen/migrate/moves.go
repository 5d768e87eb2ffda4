// SPDX-License-Identifier: Apache-2.0

// What names a version in objects: owner references, and managedFields.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
)

// dependent is an object that names a version of the kind: one of the kind, or one that an
// object of the kind owns.
type dependent struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (d dependent) String() string { return d.resource.Resource + " " + d.namespace + "/" + d.name }

// dependents returns the objects of a resource that a function chooses.
func (m *migration) dependents(ctx context.Context, resource schema.GroupVersionResource, chooses func(*metav1.PartialObjectMetadata) bool) (found []dependent, err error) {
	err = pages(ctx, func(options metav1.ListOptions) (runtime.Object, error) {
		return m.metadata.Resource(resource).List(ctx, options)
	}, func(object *metav1.PartialObjectMetadata) {
		if chooses(object) {
			found = append(found, dependent{resource, object.Namespace, object.Name})
		}
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		return nil, fmt.Errorf("reading %s: %w", resource.GroupResource(), err)
	}
	return found, nil
}

// move changes the metadata of an object. change returns the fields to set, or nil.
func (m *migration) move(ctx context.Context, d dependent, change func(*metav1.PartialObjectMetadata) (map[string]any, error)) error {
	client := m.metadata.Resource(d.resource).Namespace(d.namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := client.Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		fields, err := change(object)
		if err != nil || fields == nil {
			return err
		}
		fields["uid"], fields["resourceVersion"] = object.UID, object.ResourceVersion
		patch, err := json.Marshal(map[string]any{"metadata": fields})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, d.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "migrate"})
		return ignoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("moving %s to another version: %w", d, err)
	}
	return nil
}

// moveManagedFields moves the managedFields of each object to the new version, or back.
func (m *migration) moveManagedFields(ctx context.Context, back bool) error {
	version := m.New
	if back {
		version = m.Old
	}
	resource := schema.GroupVersionResource{Group: m.Group(), Version: version, Resource: m.Resource()}
	all, err := m.dependents(ctx, resource, func(*metav1.PartialObjectMetadata) bool { return true })
	if err != nil {
		return err
	}
	for i, d := range all {
		err := m.move(ctx, d, func(object *metav1.PartialObjectMetadata) (map[string]any, error) {
			moved, err := m.MoveManagedFields(object.ManagedFields, back)
			if err != nil || equality.Semantic.DeepEqual(moved, object.ManagedFields) {
				return nil, err
			}
			return map[string]any{"managedFields": moved}, nil
		})
		if err != nil {
			return err
		}
		if n := i + 1; n%pageSize == 0 || n == len(all) {
			fmt.Fprintf(m.out, "  the managedFields of %d of %d objects name %s\n", n, len(all), version)
		}
	}
	return nil
}

// owned returns all objects in the cluster whose owner references name the kind in a version.
// The garbage collector ignores a reference to a version that is not served.
func (m *migration) owned(ctx context.Context, version string) (found []dependent, err error) {
	lists, err := m.discover.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("finding out which resources there are: %w", err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch"}}, lists) {
		served, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			some, err := m.dependents(ctx, served.WithResource(kind.Name), func(object *metav1.PartialObjectMetadata) bool {
				return slices.ContainsFunc(object.OwnerReferences, m.names(version))
			})
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}
	return found, nil
}

// names returns a function that reports whether a reference names the kind in a version.
func (m *migration) names(version string) func(metav1.OwnerReference) bool {
	return func(ref metav1.OwnerReference) bool {
		return ref.APIVersion == m.Group()+"/"+version && ref.Kind == m.raw.Spec.Names.Kind
	}
}

// moveReferences makes owner references name another version.
func (m *migration) moveReferences(ctx context.Context, from, to string) error {
	found, err := m.owned(ctx, from)
	for _, d := range found {
		err = errors.Join(err, m.move(ctx, d, func(object *metav1.PartialObjectMetadata) (map[string]any, error) {
			references := object.OwnerReferences
			for i := range references {
				if m.names(from)(references[i]) {
					references[i].APIVersion = m.Group() + "/" + to
				}
			}
			return map[string]any{"ownerReferences": references}, nil
		}))
	}
	fmt.Fprintf(m.out, "  %d owner references named %s\n", len(found), from)
	return err
}
