// SPDX-License-Identifier: Apache-2.0

// The finalizer, which keeps an object until its step is undone.

package external

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Client is the part of a typed client, for one namespace, that SetFinalizer uses.
type Client[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// SetFinalizer adds a finalizer to an object, or removes it, and returns the resulting object. Other
// finalizers stay.
//
// The cache may hold only a part of the object, so the patch starts from a live read. It returns a
// conflict if the live object is another one with the name, if its deletion has begun since it was
// cached, or if it changes between the read and the patch.
func SetFinalizer[T metav1.Object](ctx context.Context, client Client[T], cached T, finalizer string, hold bool, options metav1.PatchOptions) (T, error) {
	live, err := client.Get(ctx, cached.GetName(), metav1.GetOptions{})
	if err != nil {
		return live, err
	}
	if live.GetUID() != cached.GetUID() || (live.GetDeletionTimestamp() == nil) != (cached.GetDeletionTimestamp() == nil) {
		return live, apierrors.NewConflict(schema.GroupResource{}, cached.GetName(), errors.New("it is another object, or being deleted"))
	}
	if slices.Contains(live.GetFinalizers(), finalizer) == hold {
		return live, nil
	}
	finalizers := slices.DeleteFunc(live.GetFinalizers(), func(name string) bool { return name == finalizer })
	if hold {
		finalizers = append(finalizers, finalizer)
	}
	patch, err := finalizersPatch(live, finalizers)
	if err != nil {
		return live, err
	}
	return client.Patch(ctx, live.GetName(), types.MergePatchType, patch, options)
}

// finalizersPatch returns the merge patch that replaces the finalizers of an object.
//
// An update would send the whole object without the fields that this program's types lack, and so
// delete fields of a newer CustomResourceDefinition. A merge patch replaces the whole list of
// finalizers, so it names the version from which the list was computed; otherwise it could remove
// a finalizer that someone has just added. Custom resources have no strategic merge patch.
func finalizersPatch(live metav1.Object, finalizers []string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "finalizers": finalizers,
	}})
}
