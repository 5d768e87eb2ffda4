// SPDX-License-Identifier: Apache-2.0

// How the controller reads and writes the objects of each kind: the informers and typed
// clients, without their types, because the loop is the same for every kind.

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
)

// apisOf has, for each kind of internal/plan, how to read and write its objects and what they
// own, in the order of its table.
var apisOf = map[string]func(config Config) (api[plan.Owner], []api[plan.Object]){
	"Foo": func(config Config) (api[plan.Owner], []api[plan.Object]) {
		return ownersOf(config.FooInformers.Samplecontroller().V1alpha1().Foos().Informer(), config.FooClient.SamplecontrollerV1alpha1().Foos),
			[]api[plan.Object]{
				childrenOf(config.KubeInformers.Apps().V1().Deployments().Informer(), config.KubeClient.AppsV1().Deployments),
			}
	},
}

// api is how the controller reads and writes the objects of a kind: owners or children.
type api[T interface {
	comparable
	plan.Object
}] struct {
	informer cache.TypedSharedIndexInformer[T]
	cache    cache.TypedIndexer[T]
	// takes reports whether an object is of the client's type.
	takes func(object plan.Object) bool

	get func(ctx context.Context, namespace, name string) (T, error)
	// updateStatus is for owners, and the others are for children.
	updateStatus func(ctx context.Context, owner T) (T, error)
	create       func(ctx context.Context, child T) (T, error)
	patch        func(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (T, error)
	delete       func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
}

// ownersOf returns the api of an informer and a generated client, such as
// clientset.SamplecontrollerV1alpha1().Foos.
func ownersOf[F plan.Owner, C interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (F, error)
	UpdateStatus(ctx context.Context, owner F, options metav1.UpdateOptions) (F, error)
}](informer cache.SharedIndexInformer, in func(namespace string) C) api[plan.Owner] {
	owners := cache.NewTypedSharedIndexInformer[plan.Owner](informer)
	return api[plan.Owner]{
		informer: owners, cache: owners.GetTypedIndexer(),
		takes: func(object plan.Object) bool { _, ok := object.(F); return ok },
		get: func(ctx context.Context, namespace, name string) (plan.Owner, error) {
			return as[plan.Owner](in(namespace).Get(ctx, name, metav1.GetOptions{}))
		},
		updateStatus: func(ctx context.Context, owner plan.Owner) (plan.Owner, error) {
			return as[plan.Owner](in(owner.GetNamespace()).UpdateStatus(ctx, owner.(F), metav1.UpdateOptions{FieldManager: names.Controller}))
		},
	}
}

// childrenOf returns the api of an informer and a client, such as
// clientset.AppsV1().Deployments.
func childrenOf[T plan.Object, C interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, child T, options metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}](informer cache.SharedIndexInformer, in func(namespace string) C) api[plan.Object] {
	children := cache.NewTypedSharedIndexInformer[plan.Object](informer)
	return api[plan.Object]{
		informer: children, cache: children.GetTypedIndexer(),
		takes: func(object plan.Object) bool { _, ok := object.(T); return ok },
		get: func(ctx context.Context, namespace, name string) (plan.Object, error) {
			return as[plan.Object](in(namespace).Get(ctx, name, metav1.GetOptions{}))
		},
		create: func(ctx context.Context, child plan.Object) (plan.Object, error) {
			return as[plan.Object](in(child.GetNamespace()).Create(ctx, child.(T), metav1.CreateOptions{FieldManager: names.Controller}))
		},
		patch: func(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (plan.Object, error) {
			return as[plan.Object](in(namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{FieldManager: names.Controller}))
		},
		delete: func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
			return in(namespace).Delete(ctx, name, options)
		},
	}
}

// as returns the answer of a typed client without its type: nil if there is an error.
func as[Untyped, T any](object T, err error) (untyped Untyped, _ error) {
	if err == nil {
		untyped = any(object).(Untyped) //nolint:forcetypeassert // the type constraints say so
	}
	return untyped, err
}
