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

// The finalizer, which keeps an object until its step is taken back.

package external

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client is what SetFinalizer calls of the client of a kind, in one namespace.
type Client[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// SetFinalizer adds a finalizer to an object, or removes it, and returns the object as the
// API server has it then. The finalizers of others stay.
//
// The cache may hold only a part of the object, so the update is made from a live read. It
// is a conflict if that is another object of the name, or if its deletion has begun since
// the object was cached; or if somebody writes between the read and the update.
func SetFinalizer[T metav1.Object](ctx context.Context, client Client[T], cached T, finalizer string, hold bool, options metav1.UpdateOptions) (T, error) {
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
	live.SetFinalizers(finalizers)
	return client.Update(ctx, live, options)
}
