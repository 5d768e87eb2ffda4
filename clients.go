// SPDX-License-Identifier: Apache-2.0

// What a controller is made of, and how it reads and writes the objects of each kind: the
// informers and typed clients, without their types, because the loop is the same for every
// kind.

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
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

// Config holds what a Controller is made of.
type Config struct {
	// Name is that of the work queue in metrics.
	Name string
	// KubeClient writes children, and FooClient the status of Foos.
	KubeClient kubernetes.Interface
	FooClient  clientset.Interface
	// KubeInformers and FooInformers are the informers that the Controller reads from. They
	// must not run yet, because NewController adds indexes to them, and says what they keep.
	KubeInformers kubeinformers.SharedInformerFactory
	FooInformers  fooinformers.SharedInformerFactory
	// Recorder records an Event for each transition of the condition Ready.
	Recorder record.EventRecorder
	Clock    clock.WithTicker
	// CallTimeout bounds each call to the API server.
	CallTimeout time.Duration
	Metrics     *metrics.Metrics
	// MaxRollouts is how many Foos at a time restart their Pods because of another Image. 0
	// means any number.
	MaxRollouts int
}

// NewController makes the Controller of a kind. Call it before the informer factories are
// started.
func NewController(config Config, kind *plan.OwnerKind) (*Controller, error) {
	apis, known := apisOf[kind.Kind]
	if !known {
		return nil, fmt.Errorf("the kind %s has no clients in clients.go", kind.Kind)
	}
	owners, children := apis(config)
	work := queue.New(config.Name, config.Clock)
	c := &Controller{
		api:         owners,
		kind:        kind,
		buckets:     plan.NewBuckets(),
		queue:       work,
		backoff:     queue.NewBackoff(work, config.Clock),
		rollouts:    &queue.Rollouts{Clock: config.Clock, Limit: config.MaxRollouts},
		crdMismatch: &memory.CRDMismatch{Clock: config.Clock, Resource: kind.Resource.GroupResource()},
		replaced:    &memory.Replaced{Clock: config.Clock},
		recorder:    config.Recorder,
		clock:       config.Clock,
		callTimeout: config.CallTimeout,
		metrics:     config.Metrics,
	}
	c.metrics.CountWritesTo(c.statusResource(), "update")
	c.metrics.CountRefusalsBy(failure.Causes...)
	for i, row := range kind.Children {
		if i >= len(children) || !children[i].takes(row.Empty()) {
			return nil, fmt.Errorf("row %d of the table of %s is the kind %s, and its client in clients.go is another's", i, kind.Kind, row.Kind)
		}
		c.children = append(c.children, newChildAPI(c, row, children[i]))
	}
	if err := c.prepareInformers(); err != nil {
		return nil, fmt.Errorf("preparing the informers: %w", err)
	}
	return c, nil
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
	// writeStatus is for owners, and the others are for children.
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

// as returns the answer of a typed client without its type: nil if there is an error.
func as[Untyped, T any](object T, err error) (untyped Untyped, _ error) {
	if err == nil {
		untyped = any(object).(Untyped) //nolint:forcetypeassert // the type constraints say so
	}
	return untyped, err
}

// childAPI is a kind of children: its row of the table, and how the controller reads and
// writes it.
type childAPI struct {
	api[plan.Object]

	row        *plan.ChildKind
	controller *Controller
}

func newChildAPI(c *Controller, row *plan.ChildKind, api api[plan.Object]) *childAPI {
	c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	return &childAPI{api: api, row: row, controller: c}
}

// controlledBy returns the objects of the cache that a Foo controls.
func (k *childAPI) controlledBy(owner plan.Owner) []plan.Object {
	var controlled []plan.Object
	for _, candidate := range lookUp(k.cache, byControllerUID, k.controller.buckets.Of(string(owner.GetUID()))) {
		if k.row.OwnerKind.IsControlledBy(candidate, owner) {
			controlled = append(controlled, candidate)
		}
	}
	return controlled
}

// named returns the object of the cache with the name that a Foo asks for, or nil.
func (k *childAPI) named(owner plan.Owner) plan.Object {
	named, err := cached(k.cache, cache.ObjectName{Namespace: owner.GetNamespace(), Name: k.row.Name(owner)})
	if err != nil {
		return nil
	}
	return named
}

// Resource is that of the Foos, such as "foos".
func (c *Controller) Resource() string { return c.kind.Resource.Resource }

// CountByReady counts the Foos of the cache by the status of their condition Ready.
func (c *Controller) CountByReady() map[metav1.ConditionStatus]int {
	return plan.CountByReady(c.cache.List())
}

// HasWaiting reports whether Foos of a namespace wait for a worker.
func (c *Controller) HasWaiting(namespace string) bool { return c.queue.HasWaiting(namespace) }

// statusResource is what metrics call the status of the kind.
func (c *Controller) statusResource() string { return c.kind.Resource.Resource + "/status" }

// Reads returns the resources that the informers read.
func (c *Controller) Reads() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{c.kind.Resource}
	for _, kind := range c.children {
		resources = append(resources, kind.row.Resource)
	}
	return resources
}

// world returns what the caches say of the Foo.
func (s *ownerSync) world() *plan.World {
	return s.kind.NewWorld(s.owner, func(row *plan.ChildKind) (plan.Object, []plan.Object) {
		k := s.apiOf(row)
		return k.named(s.owner), k.controlledBy(s.owner)
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
		return nil, fmt.Errorf("reading %s %q: %w", child.Kind, name, err)
	}
	return live, nil
}

// recheckOwner reads the Foo live and returns nil if it still asks for what the cache says.
// If the cache has its newest version, the Foo no longer counts as stale: the conflict
// that made it count as such was an error of somebody else.
func (s *ownerSync) recheckOwner(ctx context.Context) error {
	live, err := s.live(ctx)
	if err != nil {
		s.memory.Stale.Observe(s.owner, err)
		return err
	}
	if !plan.AsksTheSame(s.owner, live) {
		return failure.ErrBehind
	}
	if live.GetResourceVersion() == s.owner.GetResourceVersion() {
		s.memory.Stale = ""
	}
	return nil
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
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}
