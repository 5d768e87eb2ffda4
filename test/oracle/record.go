// SPDX-License-Identifier: Apache-2.0

// Package oracle records all states of Foos and their children from the watches of an API server, for
// the rules of pkg/reconcile/reconciletest/rules.
package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
	"example.com/sample-controller/test/footest"
)

// pollPeriod is how often Lies checks whether the watches have caught up.
const pollPeriod = 20 * time.Millisecond

// API has the objects of the kinds of test/footest in a namespace, or in all namespaces with "".
type API struct {
	Kube      kubernetes.Interface
	Foos      clientset.Interface
	Namespace string
}

// List lists the objects of a kind.
func (a API) List(ctx context.Context, kind *rows.Kind) (runtime.Object, error) {
	list, err := a.request("GET", kind, metav1.ListOptions{}).Do(ctx).Get()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Resource.Resource, err)
	}
	return list, nil
}

// All lists the objects of a kind of the program, and of the kinds of its children.
func (a API) All(ctx context.Context, owner *rows.OwnerRow) (objects []rows.Object, err error) {
	for _, kind := range owner.All() {
		list, err := a.List(ctx, kind)
		if err == nil {
			err = meta.EachListItem(list, func(object runtime.Object) error {
				objects = append(objects, object.(rows.Object)) //nolint:forcetypeassert // all kinds have metadata
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// Get reads an object of a kind.
func (a API) Get(ctx context.Context, kind *rows.Kind, name string) (rows.Object, error) {
	return one(a.request("GET", kind, metav1.ListOptions{}, name).Do(ctx))
}

// Create creates an object of a kind.
func (a API) Create(ctx context.Context, kind *rows.Kind, object rows.Object) (rows.Object, error) {
	return one(a.request("POST", kind, metav1.ListOptions{}).Body(object).Do(ctx))
}

// Update replaces an object of a kind.
func (a API) Update(ctx context.Context, kind *rows.Kind, object rows.Object) (rows.Object, error) {
	return one(a.request("PUT", kind, metav1.ListOptions{}, object.GetName()).Body(object).Do(ctx))
}

// Delete deletes an object of a kind in the background.
func (a API) Delete(ctx context.Context, kind *rows.Kind, name string) error {
	background := metav1.DeletePropagationBackground
	return a.request("DELETE", kind, metav1.ListOptions{}, name).Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(ctx).Error()
}

func one(answer rest.Result) (rows.Object, error) {
	object, err := answer.Get()
	if err != nil {
		return nil, err
	}
	return object.(rows.Object), nil //nolint:forcetypeassert // all kinds have metadata
}

// request returns a request for the objects of a kind. One REST client reads all kinds of
// children, because it knows their types and gets the whole path.
func (a API) request(verb string, kind *rows.Kind, options metav1.ListOptions, name ...string) *rest.Request {
	client, codec := a.Kube.CoreV1().RESTClient(), scheme.ParameterCodec
	if kind.Resource.Group == footest.FooKind.Resource.Group {
		client, codec = a.Foos.SamplecontrollerV1alpha1().RESTClient(), fooscheme.ParameterCodec
	}
	path := []string{"apis", kind.Resource.Group, kind.Resource.Version}
	if kind.Resource.Group == "" {
		path = []string{"api", kind.Resource.Version}
	}
	if a.Namespace != "" {
		path = append(path, "namespaces", a.Namespace)
	}
	path = append(append(path, kind.Resource.Resource), name...)
	return client.Verb(verb).AbsPath(path...).VersionedParams(&options, codec)
}

// Recording fills a History from the watches of an API server.
type Recording struct {
	api     API
	history rules.History
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	broken error
}

// Record lists the Foos and their children, and records their changes until Stop. It resumes watches that end.
func Record(ctx context.Context, api API) (*Recording, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recording{api: api, stop: stop, history: rules.History{Owner: footest.FooOwner}}
	// List Foos last, so that the record has the children of each.
	kinds := slices.Concat(footest.Kinds, []*rows.Kind{footest.FooKind})
	lists := make([]runtime.Object, len(kinds))
	var err error
	for i, kind := range kinds {
		if err == nil {
			lists[i], err = api.List(ctx, kind)
		}
	}
	for i, kind := range kinds {
		if err == nil {
			err = r.follow(ctx, kind, lists[i])
		}
	}
	if err != nil {
		r.Stop()
		return nil, fmt.Errorf("recording Foos and their children: %w", err)
	}
	return r, nil
}

// follow records the objects of a list, then the events of a watch from the list's
// version on.
func (r *Recording) follow(ctx context.Context, kind *rows.Kind, list runtime.Object) error {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	if err := meta.EachListItem(list, func(object runtime.Object) error { r.record(object, false); return nil }); err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, accessor.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return r.api.request("GET", kind, options).Watch(ctx)
		},
	})
	if err != nil {
		return err
	}
	r.running.Go(func() {
		for event := range watcher.ResultChan() {
			switch event.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				r.record(event.Object, event.Type == watch.Deleted)
			case watch.Error:
				r.breakOff(apierrors.FromObject(event.Object))
			}
		}
	})
	return nil
}

func (r *Recording) record(object runtime.Object, deleted bool) {
	accessor, ok := object.(rows.Object)
	if !ok {
		r.breakOff(fmt.Errorf("a watch delivered %T", object))
		return
	}
	r.history.Add(accessor, deleted)
}

// breakOff stores the error that left a gap in the record.
func (r *Recording) breakOff(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = errors.Join(r.broken, err)
}

// Lies waits until everything up to now is recorded, and returns a sentence for each
// state in which a Foo falsely reported Ready=True. It fails if the record has a gap, as
// after a restore of etcd. In that case start another recording.
func (r *Recording) Lies(ctx context.Context) ([]string, error) {
	// List Foos first: what they report depends on older children.
	until := uint64(0)
	for _, kind := range slices.Concat([]*rows.Kind{footest.FooKind}, footest.Kinds) {
		list, err := r.api.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		if kind == footest.FooKind {
			until, err = rules.VersionOf(list)
		}
		if err == nil {
			err = wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) {
				return r.has(list, kind)
			})
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for the watches to catch up: %w", err)
		}
	}
	return r.history.LiesUntil(until)
}

// has reports whether the record is as new as a list.
func (r *Recording) has(list runtime.Object, kind *rows.Kind) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return false, r.broken
	}
	return r.history.Has(kind, list)
}

// Interruptions waits until everything up to now is recorded, and returns a sentence for
// each time, from when a Foo first reported Ready=True until its deletion, in which none of
// the children that it controlled was in service.
func (r *Recording) Interruptions(ctx context.Context, inService func(child rows.Object) bool) ([]string, error) {
	if _, err := r.Lies(ctx); err != nil {
		return nil, err
	}
	return r.history.Interruptions(inService), nil
}

// Stop ends the recording.
func (r *Recording) Stop() {
	r.stop()
	r.running.Wait()
}
