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
var apisOf = map[string]func(config Config) (ownerAPI, []childAPI){
	"Foo": func(config Config) (ownerAPI, []childAPI) {
		return ownersOf(config.FooInformers.Samplecontroller().V1alpha1().Foos().Informer(), config.FooClient.SamplecontrollerV1alpha1().Foos),
			[]childAPI{
				childrenOf(config.KubeInformers.Apps().V1().Deployments().Informer(), config.KubeClient.AppsV1().Deployments),
			}
	},
}

// ownerAPI is how the controller reads and writes the objects of its kind.
type ownerAPI struct {
	informer cache.TypedSharedIndexInformer[plan.Owner]
	cache    cache.TypedIndexer[plan.Owner]
	client   ownerClient
}

type ownerClient interface {
	Get(ctx context.Context, namespace, name string) (plan.Owner, error)
	UpdateStatus(ctx context.Context, owner plan.Owner) (plan.Owner, error)
}

// childAPI is how it reads and writes a kind of children.
type childAPI struct {
	informer cache.TypedSharedIndexInformer[plan.Object]
	cache    cache.TypedIndexer[plan.Object]
	client   childClient
	// takes reports whether an object is of the client's type.
	takes func(child plan.Object) bool
}

type childClient interface {
	Get(ctx context.Context, namespace, name string) (plan.Object, error)
	Create(ctx context.Context, child plan.Object) (plan.Object, error)
	Patch(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (plan.Object, error)
	Delete(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
}

// ownersOf returns the ownerAPI of an informer and a generated client, such as
// clientset.SamplecontrollerV1alpha1().Foos.
func ownersOf[F plan.Owner, C typedOwnerClient[F]](informer cache.SharedIndexInformer, in func(namespace string) C) ownerAPI {
	owners := cache.NewTypedSharedIndexInformer[plan.Owner](informer)
	return ownerAPI{owners, owners.GetTypedIndexer(), ownersIn[F, C]{in}}
}

// childrenOf returns the childAPI of an informer and a client, such as
// clientset.AppsV1().Deployments.
func childrenOf[T plan.Object, C typedChildClient[T]](informer cache.SharedIndexInformer, in func(namespace string) C) childAPI {
	takes := func(child plan.Object) bool { _, ok := child.(T); return ok }
	children := cache.NewTypedSharedIndexInformer[plan.Object](informer)
	return childAPI{children, children.GetTypedIndexer(), childrenIn[T, C]{in}, takes}
}

type typedOwnerClient[F any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (F, error)
	UpdateStatus(ctx context.Context, owner F, options metav1.UpdateOptions) (F, error)
}

type ownersIn[F plan.Owner, C typedOwnerClient[F]] struct{ in func(namespace string) C }

func (o ownersIn[F, C]) Get(ctx context.Context, namespace, name string) (plan.Owner, error) {
	return as[plan.Owner](o.in(namespace).Get(ctx, name, metav1.GetOptions{}))
}

func (o ownersIn[F, C]) UpdateStatus(ctx context.Context, owner plan.Owner) (plan.Owner, error) {
	return as[plan.Owner](o.in(owner.GetNamespace()).UpdateStatus(ctx, owner.(F), metav1.UpdateOptions{FieldManager: names.Controller}))
}

type typedChildClient[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, child T, options metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

type childrenIn[T plan.Object, C typedChildClient[T]] struct{ in func(namespace string) C }

func (c childrenIn[T, C]) Get(ctx context.Context, namespace, name string) (plan.Object, error) {
	return as[plan.Object](c.in(namespace).Get(ctx, name, metav1.GetOptions{}))
}

func (c childrenIn[T, C]) Create(ctx context.Context, child plan.Object) (plan.Object, error) {
	return as[plan.Object](c.in(child.GetNamespace()).Create(ctx, child.(T), metav1.CreateOptions{FieldManager: names.Controller}))
}

func (c childrenIn[T, C]) Patch(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (plan.Object, error) {
	return as[plan.Object](c.in(namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{FieldManager: names.Controller}))
}

func (c childrenIn[T, C]) Delete(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	return c.in(namespace).Delete(ctx, name, options)
}

// as returns the answer of a typed client without its type: nil if there is an error.
func as[Untyped, T any](object T, err error) (untyped Untyped, _ error) {
	if err == nil {
		untyped = any(object).(Untyped) //nolint:forcetypeassert // the type constraints say so
	}
	return untyped, err
}
