// SPDX-License-Identifier: Apache-2.0

// How a controller reads, watches and writes the objects of each kind. The informers and typed
// clients lose their types here, because the loop is the same for every kind. The second half
// turns events into keys: it has the indexes of the caches and the event handlers, which add
// the keys of the affected Foos to the queue.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// apisOf maps each kind of internal/plan to the APIs of its objects and of their children, in
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

// holderOf returns the cached owner that controls a child, or nil.
func (k *childAPI) holderOf(child plan.Object) plan.Owner {
	if child == nil {
		return nil
	}
	ref := k.row.OwnerKind.ControllerOf(child)
	if ref == nil {
		return nil
	}
	holder, err := cached(k.controller.cache, cache.ObjectName{Namespace: child.GetNamespace(), Name: ref.Name})
	if err != nil || holder == nil || holder.GetUID() != ref.UID {
		return nil
	}
	return holder
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
		if found.Holder = k.holderOf(found.Named); found.Holder != nil {
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

// withDeadline bounds a call to the API server. Without it, two calls that hang would
// stop both workers forever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}

// byControllerUID indexes children by the bucket of the UID of the Foo that controls them.
// It finds the children that a Foo had under an earlier name. Foos are indexed by the names
// of the children that they want, as the bucket of "namespace/name"; the index of each kind
// has the name of the kind's resource.
const byControllerUID = "controllerUID"

// prepareInformers adds indexes to the caches, and bounds what they keep of each object. The
// informers must not run yet.
func (c *Controller) prepareInformers() error {
	errs, resources := []error{c.informer.SetTransform(c.kind.Transform)}, sets.New[schema.GroupVersionResource]()
	for _, kind := range c.children {
		if resources.Has(kind.row.Resource) {
			// Each row would delete the other's children, which it does not want.
			errs = append(errs, fmt.Errorf("the table has two rows for %s", kind.row.Resource.Resource))
			continue
		}
		resources.Insert(kind.row.Resource)
		errs = append(errs, kind.prepareInformer())
	}
	return errors.Join(errs...)
}

func (k *childAPI) prepareInformer() error {
	if err := k.row.Check(); err != nil {
		return err
	}
	buckets := k.controller.buckets
	return errors.Join(
		k.informer.SetTransform(k.row.Transform),
		k.informer.AddTypedIndexers(cache.TypedIndexers[plan.Object]{
			byControllerUID: func(child plan.Object) ([]string, error) { return k.row.OwnerKind.ByControllerUID(buckets, child), nil },
		}),
		k.controller.informer.AddTypedIndexers(cache.TypedIndexers[plan.Owner]{
			k.row.Resource.String(): func(owner plan.Owner) ([]string, error) { return k.row.ByChildName(buckets, owner), nil },
		}))
}

// addEventHandlers registers the event handlers, which then receive every cached object.
// Wait for the returned checkers before starting workers: the handlers receive the initial
// objects after the caches are full.
func (c *Controller) addEventHandlers(ctx context.Context) ([]cache.DoneChecker, error) {
	logger := klog.FromContext(ctx)
	options := cache.HandlerOptions{Logger: &logger}
	handlers, err := c.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Owner]{
		AddFunc:    c.addOwner,
		UpdateFunc: c.updateOwner,
		DeleteFunc: c.deleteOwner,
	}, options)
	if err != nil {
		return nil, err
	}
	synced := []cache.DoneChecker{handlers.HasSyncedChecker()}
	for _, kind := range c.children {
		handlers, err := kind.addEventHandlers(options)
		if err != nil {
			return nil, err
		}
		synced = append(synced, handlers.HasSyncedChecker())
	}
	return synced, nil
}

func (k *childAPI) addEventHandlers(options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return k.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Object]{
		AddFunc:    k.added,
		UpdateFunc: k.updated,
		DeleteFunc: k.deleted,
	}, options)
}

func (c *Controller) addOwner(owner plan.Owner, isInInitialList bool) {
	key := cache.MetaObjectToName(owner)
	if isInInitialList {
		c.queue.AddLowPriority(key)
		return
	}
	c.queue.Add(key)
}

// updateOwner handles changes and the periodic resync. A Foo whose last sync failed stays
// in its back-off unless its desired state has changed.
func (c *Controller) updateOwner(before, after plan.Owner) {
	key := cache.MetaObjectToName(after)
	if before.GetUID() != after.GetUID() {
		// A deletion and a creation arrived as one update: forget the first Foo's failures.
		c.backoff.Forget(key)
	}
	switch {
	case plan.AsksTheSame(before, after) && c.backoff.InBackoff(key): // another sync is certain
	case before.GetResourceVersion() == after.GetResourceVersion(): // a resync
		c.queue.AddLowPriority(key)
	default:
		c.queue.Add(key)
	}
}

// deleteOwner queues a deleted Foo once more, so that a sync forgets it.
func (c *Controller) deleteOwner(deleted cache.DeletedObject[plan.Owner]) {
	key := deleted.GetObjectName()
	// Now, not in the sync: by then there may be another Foo with the same name.
	c.backoff.Forget(key)
	c.queue.Add(key)
}

// added ignores the children of the initial list, because every Foo is in the initial list
// of Foos.
func (k *childAPI) added(child plan.Object, isInInitialList bool) {
	if !isInInitialList {
		k.enqueueOwnersOf(child)
	}
}

func (k *childAPI) updated(before, after plan.Object) {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return // a resync: nothing changed
	}
	if plan.HasSameHolder(before, after) {
		k.enqueueHolder(after)
		return
	}
	// Both states, because a Foo may have lost the child.
	k.enqueueOwnersOf(before, after)
}

func (k *childAPI) deleted(child cache.DeletedObject[plan.Object]) {
	if child.OptionalObj != nil {
		k.enqueueOwnersOf(child.OptionalObj)
		return
	}
	for _, key := range k.ownersAskingFor(child.GetObjectName()) {
		k.controller.queue.Add(key)
	}
}

// enqueueOwnersOf adds the Foos that control a child in any of its states, and those that
// want its name and may be waiting for it. It adds each once: a worker could take a key
// between two additions and sync it twice.
func (k *childAPI) enqueueOwnersOf(states ...plan.Object) {
	keys := sets.New[cache.ObjectName]()
	for _, child := range states {
		if ref := k.row.OwnerKind.ControllerOf(child); ref != nil {
			keys.Insert(cache.ObjectName{Namespace: child.GetNamespace(), Name: ref.Name})
		}
		if owner := child.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]; owner != "" {
			keys.Insert(cache.ObjectName{Namespace: child.GetNamespace(), Name: owner})
		}
		keys.Insert(k.ownersAskingFor(cache.MetaObjectToName(child))...)
	}
	for key := range keys {
		k.controller.queue.Add(key)
	}
}

// enqueueHolder adds the Foo that controls a child, or may adopt it: its adoption may have been
// refused because of what has changed now.
func (k *childAPI) enqueueHolder(child plan.Object) {
	if ref := k.row.OwnerKind.ControllerOf(child); ref != nil {
		k.controller.queue.Add(cache.ObjectName{Namespace: child.GetNamespace(), Name: ref.Name})
	} else if adopter := child.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]; adopter != "" {
		k.controller.queue.Add(cache.ObjectName{Namespace: child.GetNamespace(), Name: adopter})
	}
}

// maxAsking is how many of the Foos that want the same name are queued at once when its object
// changes. Only one of them can have the name. The resync queues the others: any number of
// Foos may want a name, and each change would queue all of them.
const maxAsking = 16

// ownersAskingFor returns the keys of at most maxAsking Foos that want a child with this
// name.
func (k *childAPI) ownersAskingFor(child cache.ObjectName) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, owner := range lookUp(k.controller.cache, k.row.Resource.String(), k.controller.buckets.Of(child.String())) {
		if len(keys) == maxAsking {
			break
		}
		if k.row.Name(owner) == child.Name && k.row.Wanted(owner) && owner.GetNamespace() == child.Namespace && !plan.IsTerminating(owner) {
			keys = append(keys, cache.MetaObjectToName(owner))
		}
	}
	return keys
}

// lookUp returns the objects in a bucket of an index.
func lookUp[T any](indexer cache.TypedIndexer[T], index, bucket string) []T {
	found, err := indexer.ByTypedIndex(index, bucket)
	if err != nil {
		panic(err) // the index is missing, which is a bug: nothing removes it at run time
	}
	return found
}

// cached returns the object with a key from a cache, or the zero value if there is none.
func cached[T any](indexer cache.TypedIndexer[T], key cache.ObjectName) (found T, err error) {
	object, exists, err := indexer.GetByKey(key.String())
	if err == nil && exists {
		found = object.(T) //nolint:forcetypeassert // the informer's type
	}
	return found, err
}
