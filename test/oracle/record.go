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

// Recording of a History from the watches of an API server.

package oracle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// pollPeriod is how often Lies checks whether the watches have caught up.
const pollPeriod = 20 * time.Millisecond

// Recording fills a History from the watches of an API server.
type Recording struct {
	kube      kubernetes.Interface
	foos      clientset.Interface
	namespace string
	history   History
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu sync.Mutex
	// seen holds the newest recorded version of each object.
	seen   map[types.UID]seen
	broken error
}

// seen is the newest recorded version of an object, its kind, and whether it was deleted.
type seen struct {
	version uint64
	kind    string // see kindOf
	deleted bool
}

// Record lists the Foos and Deployments of a namespace, or of all namespaces with "", and
// records their changes until Stop. It resumes watches that end.
func Record(ctx context.Context, kube kubernetes.Interface, foos clientset.Interface, namespace string) (*Recording, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recording{kube: kube, foos: foos, namespace: namespace, stop: stop, seen: map[types.UID]seen{}}
	deployments, fooList, err := r.list(ctx)
	if err == nil {
		err = errors.Join(
			r.follow(ctx, deployments, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return kube.AppsV1().Deployments(namespace).Watch(ctx, options)
			}),
			r.follow(ctx, fooList, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return foos.SamplecontrollerV1alpha1().Foos(namespace).Watch(ctx, options)
			}))
	}
	if err != nil {
		r.Stop()
		return nil, fmt.Errorf("recording Foos and Deployments: %w", err)
	}
	return r, nil
}

func (r *Recording) list(ctx context.Context) (*appsv1.DeploymentList, *samplev1alpha1.FooList, error) {
	deployments, err := r.kube.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	foos, err := r.foos.SamplecontrollerV1alpha1().Foos(r.namespace).List(ctx, metav1.ListOptions{})
	return deployments, foos, err
}

// follow records the objects of a list, then the events of a watch from the list's
// version on.
func (r *Recording) follow(ctx context.Context, list runtime.Object, watchFunc cache.WatchFuncWithContext) error {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	if err := meta.EachListItem(list, func(object runtime.Object) error { r.record(object, false); return nil }); err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, accessor.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: watchFunc})
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
	accessor, err := meta.Accessor(object)
	if err != nil {
		r.breakOff(err)
		return
	}
	switch object := object.(type) {
	case *samplev1alpha1.Foo:
		r.history.AddFoo(object, deleted)
	case *appsv1.Deployment:
		r.history.AddDeployment(object, deleted)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[accessor.GetUID()] = seen{versionOf(accessor), kindOf(object), deleted}
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
	// List Foos first: what they report depends on older Deployments.
	foos, err := r.foos.SamplecontrollerV1alpha1().Foos(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Foos: %w", err)
	}
	deployments, err := r.kube.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	for _, lists := range []struct{ list, kind runtime.Object }{{deployments, &appsv1.Deployment{}}, {foos, &samplev1alpha1.Foo{}}} {
		err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) {
			return r.has(lists.list, kindOf(lists.kind))
		})
		if err != nil {
			return nil, fmt.Errorf("waiting for the watches to catch up: %w", err)
		}
	}
	return r.history.lies(until(foos)), nil
}

// kindOf returns a string that differs between Foos and Deployments.
func kindOf(object runtime.Object) string { return fmt.Sprintf("%T", object) }

// has reports whether the record is as new as a list: it has every object of the list, in
// the same version or a newer one, and the deletion of each object that is not in the
// list.
func (r *Recording) has(list runtime.Object, kind string) (bool, error) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return false, r.broken
	}
	all, listed := true, map[types.UID]bool{}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err == nil {
			listed[accessor.GetUID()] = true
			all = all && r.seen[accessor.GetUID()].version >= versionOf(accessor)
		}
		return err
	})
	at := parseVersion(accessor.GetResourceVersion())
	for uid, s := range r.seen {
		all = all && (s.kind != kind || s.deleted || listed[uid] || s.version > at)
	}
	return all, err
}

// until returns the version of a list.
func until(list *samplev1alpha1.FooList) uint64 { return parseVersion(list.ResourceVersion) }

// Stop ends the recording.
func (r *Recording) Stop() {
	r.stop()
	r.running.Wait()
}
