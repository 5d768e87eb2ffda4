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

// Recording fills a History from the watches of an API server.
type Recording struct {
	kube      kubernetes.Interface
	foos      clientset.Interface
	namespace string
	history   rules.History
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	broken error
}

// Record lists the Foos and their children of a namespace, or of all namespaces with "",
// and records their changes until Stop. It resumes watches that end.
func Record(ctx context.Context, kube kubernetes.Interface, foos clientset.Interface, namespace string) (*Recording, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recording{kube: kube, foos: foos, namespace: namespace, stop: stop, history: rules.History{Owner: footest.FooOwner}}
	// List Foos last, so that the record has the children of each.
	kinds := slices.Concat(footest.Kinds, []*rows.Kind{footest.FooKind})
	lists := make([]runtime.Object, len(kinds))
	var err error
	for i, kind := range kinds {
		if err == nil {
			lists[i], err = r.list(ctx, kind)
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

// list lists the objects of a kind.
func (r *Recording) list(ctx context.Context, kind *rows.Kind) (runtime.Object, error) {
	list, err := r.request(kind, metav1.ListOptions{}).Do(ctx).Get()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Resource.Resource, err)
	}
	return list, nil
}

// request returns a request for the objects of a kind. One REST client reads all kinds of
// children, because it knows their types and gets the whole path.
func (r *Recording) request(kind *rows.Kind, options metav1.ListOptions) *rest.Request {
	client, codec := r.kube.CoreV1().RESTClient(), scheme.ParameterCodec
	if kind == footest.FooKind {
		client, codec = r.foos.SamplecontrollerV1alpha1().RESTClient(), fooscheme.ParameterCodec
	}
	path := []string{"apis", kind.Resource.Group, kind.Resource.Version}
	if kind.Resource.Group == "" {
		path = []string{"api", kind.Resource.Version}
	}
	if r.namespace != "" {
		path = append(path, "namespaces", r.namespace)
	}
	path = append(path, kind.Resource.Resource)
	return client.Get().AbsPath(path...).VersionedParams(&options, codec)
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
			return r.request(kind, options).Watch(ctx)
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
		list, err := r.list(ctx, kind)
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
