// SPDX-License-Identifier: Apache-2.0

// Convergence: watches until Foos have converged, whatever program makes them.
//
// Without kube-controller-manager a Foo has converged when it controls, by UID, a
// Deployment with the name that it asks for, and its status has been written, which
// managedFields show. These watches transfer only metadata, as protobuf, so that they
// take little CPU from the measured programs.
//
// With kube-controller-manager a Foo has converged when its status reports that its Pods
// are available.

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Convergence waits for Foos to converge.
type Convergence struct {
	signs  chan sign
	stop   func()
	needed int // signs of each Foo
	foos   map[types.UID]*samplev1alpha1.Foo
}

// sign is one of the observations that a Foo needs to have converged.
type sign struct {
	foo  types.UID
	kind int
	at   time.Time
	err  error
}

// Watch starts to watch for the convergence of Foos that have been created.
func (cluster *Cluster) Watch(ctx context.Context, foos ...*samplev1alpha1.Foo) (*Convergence, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Convergence{signs: make(chan sign, 1024), stop: cancel, foos: map[types.UID]*samplev1alpha1.Foo{}}
	since := ""
	for _, foo := range foos {
		c.foos[foo.UID] = foo
		since = foo.ResourceVersion
	}
	fooVersion := samplev1alpha1.GroupVersion.Version
	fooResource := samplev1alpha1.Resource("foos").WithVersion(fooVersion)
	sources := []source{
		{cluster.Metadata.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Watch, c.hasDeployment},
		{cluster.Metadata.Resource(fooResource).Watch, hasStatus},
	}
	if cluster.options.Whole {
		sources = []source{{cluster.Foos.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll).Watch, isAvailable}}
	}
	c.needed = len(sources)
	for kind, source := range sources {
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, since, source)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("watching for convergence: %w", err)
		}
		go c.read(ctx, watcher, kind, source.judge)
	}
	return c, nil
}

// source is a watch, and a function that reports for which Foo an object is a sign.
type source struct {
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	judge func(runtime.Object) (types.UID, bool)
}

// WatchWithContext opens the watch.
func (s source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.watch(ctx, options)
}

var _ cache.WatcherWithContext = source{}

// read turns the events of a watch into signs.
func (c *Convergence) read(ctx context.Context, watcher watch.Interface, kind int, judge func(runtime.Object) (types.UID, bool)) {
	send := func(s sign) {
		select {
		case c.signs <- s:
		case <-ctx.Done():
		}
	}
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			if foo, ok := judge(event.Object); ok {
				send(sign{foo: foo, kind: kind, at: time.Now()})
			}
		case watch.Error:
			send(sign{err: fmt.Errorf("watching for convergence: %v", event.Object)})
		}
	}
	send(sign{err: errors.New("watching for convergence: the watch ended")})
}

// Wait returns when all Foos have converged, with the times in ascending order. It returns
// an error when ctx or the measured program ends.
func (c *Convergence) Wait(ctx context.Context, ended <-chan struct{}) ([]time.Time, error) {
	defer c.stop()
	signs := map[types.UID]int{}
	var times []time.Time
	for len(times) < len(c.foos) {
		select {
		case s := <-c.signs:
			if s.err != nil {
				return times, s.err
			}
			_, ours := c.foos[s.foo]
			before := signs[s.foo]
			signs[s.foo] |= 1 << s.kind
			if all := 1<<c.needed - 1; ours && before != all && signs[s.foo] == all {
				times = append(times, s.at)
			}
		case <-ended:
			return times, errors.New("the program ended before all Foos had converged")
		case <-ctx.Done():
			return times, fmt.Errorf("%d of %d Foos have converged: %w", len(times), len(c.foos), context.Cause(ctx))
		}
	}
	return times, nil
}

// hasDeployment returns the UID of the Foo that controls a Deployment, and reports
// whether the Deployment has the name that the Foo asks for.
func (c *Convergence) hasDeployment(object runtime.Object) (types.UID, bool) {
	deployment, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", false
	}
	owner := metav1.GetControllerOfNoCopy(deployment)
	if owner == nil {
		return "", false
	}
	foo, ok := c.foos[owner.UID]
	return owner.UID, ok && foo.Namespace == deployment.Namespace && foo.Spec.DeploymentName == deployment.Name
}

// hasStatus reports whether a Foo's status has been written.
func hasStatus(object runtime.Object) (types.UID, bool) {
	foo, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", false
	}
	return foo.UID, slices.ContainsFunc(foo.ManagedFields, func(written metav1.ManagedFieldsEntry) bool {
		return written.Subresource == "status"
	})
}

// isAvailable reports whether a Foo's status says that its Pods are available.
func isAvailable(object runtime.Object) (types.UID, bool) {
	foo, ok := object.(*samplev1alpha1.Foo)
	if !ok || foo.Spec.Replicas == nil {
		return "", false
	}
	return foo.UID, foo.Status.AvailableReplicas == *foo.Spec.Replicas
}
