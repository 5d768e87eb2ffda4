// SPDX-License-Identifier: Apache-2.0

// How a controller reads, watches and writes the objects of each kind. The informers and typed
// clients lose their types here, because the loop is the same for every kind.

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// apisOf maps each kind of pkg/reconcile/plan to the APIs of its objects and of their children, in
// the order of its table.
var apisOf = map[string]func(config Config) (api[plan.Owner], []api[plan.Object]){
	"Foo": func(config Config) (api[plan.Owner], []api[plan.Object]) {
		return ownersOf(config.FooInformers.Samplecontroller().V1alpha1().Foos().Informer(), config.FooClient.SamplecontrollerV1alpha1().Foos),
			[]api[plan.Object]{
				childrenOf(config.KubeInformers.Apps().V1().Deployments().Informer(), config.KubeClient.AppsV1().Deployments),
			}
	},
}

// api reads and writes the objects of one kind: owners or children.
type api[T interface {
	comparable
	plan.Object
}] struct {
	informer cache.TypedSharedIndexInformer[T]
	cache    cache.TypedIndexer[T]
	// takes reports whether an object has the client's type.
	takes func(object plan.Object) bool

	get func(ctx context.Context, namespace, name string) (T, error)
	// writeStatus is for owners; the functions below are for children.
	writeStatus func(ctx context.Context, owner T) (T, error)
	create      func(ctx context.Context, child T) (T, error)
	patch       func(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (T, error)
	delete      func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
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
		writeStatus: func(ctx context.Context, owner plan.Owner) (plan.Owner, error) {
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

// as returns a typed client's response without its type, or nil if there is an error.
func as[Untyped, T any](object T, err error) (untyped Untyped, _ error) {
	if err == nil {
		untyped = any(object).(Untyped) //nolint:forcetypeassert // the type constraints guarantee it
	}
	return untyped, err
}

// childAPI is a kind of children: its row of the table, and its API.
type childAPI struct {
	api[plan.Object]

	row        *plan.ChildKind
	controller *Controller
}

func newChildAPI(c *Controller, row *plan.ChildKind, api api[plan.Object]) *childAPI {
	c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	return &childAPI{api: api, row: row, controller: c}
}

// controlledBy returns the cached objects that a Foo controls.
func (k *childAPI) controlledBy(owner plan.Owner) []plan.Object {
	var controlled []plan.Object
	for _, candidate := range lookUp(k.cache, byControllerUID, k.controller.buckets.Of(string(owner.GetUID()))) {
		if k.row.OwnerKind.IsControlledBy(candidate, owner) {
			controlled = append(controlled, candidate)
		}
	}
	return controlled
}

// named returns the cached object with the name of the child that a Foo wants, or nil.
func (k *childAPI) named(owner plan.Owner) plan.Object {
	named, err := cached(k.cache, cache.ObjectName{Namespace: owner.GetNamespace(), Name: k.row.Name(owner)})
	if err != nil {
		return nil
	}
	return named
}

// cachedOwner returns the owner with a key from the cache, or nil.
func (c *Controller) cachedOwner(key cache.ObjectName) plan.Owner {
	owner, err := cached(c.cache, key)
	if err != nil {
		return nil
	}
	return owner
}

// ensureReady returns ErrStale unless the caches include the last writes for an owner.
func (c *Controller) ensureReady(known *memory.Owner) error {
	now := c.clock.Now()
	err := known.Written.EnsureReady(c.cache, now, c.callTimeout)
	for _, k := range c.children {
		err = cmp.Or(err, known.Child(k.row.Kind).Written.EnsureReady(k.cache, now, c.callTimeout))
	}
	return err
}

// world returns the state of the Foo and its children according to the caches.
func (s *ownerSync) world() *plan.World {
	return s.kind.NewWorld(s.owner, func(row *plan.ChildKind) plan.Found {
		k := s.apiOf(row)
		found := plan.Found{Named: k.named(s.owner), Controlled: k.controlledBy(s.owner)}
		if found.Holder = s.kind.HolderOf(found.Named, s.cachedOwner); found.Holder != nil {
			found.HolderNamed = k.named(found.Holder)
		}
		return found
	})
}

func (s *ownerSync) apiOf(row *plan.ChildKind) *childAPI {
	return s.children[slices.IndexFunc(s.children, func(k *childAPI) bool { return k.row == row })]
}

// liveChild reads a child live.
func (s *ownerSync) liveChild(ctx context.Context, child *plan.Child, name string) (plan.Object, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.apiOf(child.ChildKind).get(ctx, s.owner.GetNamespace(), name)
	if err != nil {
		return nil, &plan.CallError{Doing: "reading", Kind: child.Kind, Name: name, Err: err}
	}
	return live, nil
}

// live reads the Foo live.
func (s *ownerSync) live(ctx context.Context) (plan.Owner, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.get(ctx, s.key.Namespace, s.key.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", s.kind.Kind, err)
	}
	return live, nil
}

// withDeadline begins a call to the API server: it bounds the call, which could hang forever, and
// hands the sync's turn over while it hangs. Call returned when the call has returned.
func (s *ownerSync) withDeadline(ctx context.Context) (callCtx context.Context, returned func()) {
	callCtx, cancel := context.WithTimeout(ctx, s.callTimeout)
	takeAgain := s.queue.Calling(s.key)
	return callCtx, func() {
		cancel()
		takeAgain()
	}
}

// cached returns the object with a key from a cache, or the zero value if there is none.
func cached[T any](indexer cache.TypedIndexer[T], key cache.ObjectName) (found T, err error) {
	object, exists, err := indexer.GetByKey(key.String())
	if err == nil && exists {
		found = object.(T) //nolint:forcetypeassert // the informer's type
	}
	return found, err
}
