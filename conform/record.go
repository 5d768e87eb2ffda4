// SPDX-License-Identifier: Apache-2.0

// The recorder: every state of every object in a namespace, seen without the proxy.

package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/conform/judge"
)

// recorder keeps the states of all objects of namespaces whose names begin with a prefix, or of the
// whole cluster.
type recorder struct {
	clusterWide bool
	client      dynamic.Interface
	resources   []metav1.APIResource
	// end ends the reflectors.
	end        context.CancelFunc
	reflectors sync.WaitGroup

	mu sync.Mutex
	// states are the states by namespace, in the order of arrival.
	states map[string][]judge.State
	// changed is when a namespace changed last.
	changed map[string]time.Time
}

// unrecorded are resources that are written all the time, or copies of others.
var unrecorded = []string{"events", "leases", "endpoints", "endpointslices", "nodes", "apiservices", "flowschemas", "prioritylevelconfigurations"}

// newRecorder starts a watch of each resource, and returns when each has begun.
func newRecorder(ctx context.Context, discover discovery.DiscoveryInterface, client dynamic.Interface, clusterWide bool) (*recorder, error) {
	r := &recorder{clusterWide: clusterWide, client: client, states: map[string][]judge.State{}, changed: map[string]time.Time{}}
	lists, err := discover.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			resource.Group, resource.Version = gv.Group, gv.Version
			if resource.Namespaced || clusterWide {
				r.resources = append(r.resources, resource)
			}
		}
	}
	r.watch(ctx, time.Time{})
	return r, nil
}

// watch watches all resources, in place of the watches so far. What exists at first and is older than since
// is not recorded.
func (r *recorder) watch(ctx context.Context, since time.Time) {
	if r.end != nil {
		r.end()
		r.reflectors.Wait()
	}
	ctx, r.end = context.WithCancel(ctx)
	var filled sync.WaitGroup
	for _, resource := range r.resources {
		if slices.Contains(unrecorded, resource.Name) || !slices.Contains(resource.Verbs, "watch") {
			continue
		}
		filled.Add(1)
		store := &store{
			recorder: r, resource: judge.ResourceName(resource.Name, resource.Group), since: since,
			known: map[string]*unstructured.Unstructured{}, filled: sync.OnceFunc(filled.Done),
		}
		gvr := schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Name}
		reflector := cache.NewReflectorWithOptions(listWatch(r.client.Resource(gvr)), &unstructured.Unstructured{}, store,
			cache.ReflectorOptions{Name: resource.Name})
		r.reflectors.Go(func() { reflector.RunWithContext(ctx) })
	}
	filled.Wait()
}

func listWatch(client dynamic.NamespaceableResourceInterface) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}
}

// isNamespaced reports whether a resource is in namespaces.
func (r *recorder) isNamespaced(group, resource string) bool {
	return slices.ContainsFunc(r.resources, func(known metav1.APIResource) bool {
		return known.Name == resource && known.Group == group && known.Namespaced
	})
}

// history returns the states of a namespace so far, and when the last came.
func (r *recorder) history(namespace string) ([]judge.State, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clusterWide {
		namespace = ""
	}
	return slices.Clone(r.states[namespace]), r.changed[namespace]
}

// forget drops the states of a namespace.
func (r *recorder) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clusterWide {
		namespace = ""
	}
	delete(r.states, namespace)
	delete(r.changed, namespace)
}

func (r *recorder) add(resource string, object *unstructured.Unstructured, deleted bool) {
	namespace := object.GetNamespace()
	isDefault := object.GetKind() == "ConfigMap" && object.GetName() == "kube-root-ca.crt" ||
		object.GetKind() == "ServiceAccount" && object.GetName() == "default" || object.GetName() == quotaName
	switch {
	case isDefault, object.GetKind() == "Namespace" && strings.HasPrefix(object.GetName(), namespacePrefix):
		return
	case r.clusterWide:
		namespace = ""
	case !strings.HasPrefix(namespace, namespacePrefix):
		return
	}
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[namespace] = append(r.states[namespace], judge.State{
		Resource: resource, Version: version, Deleted: deleted, Object: object.Object,
	})
	r.changed[namespace] = time.Now()
}

// store is what a Reflector writes to.
type store struct {
	recorder *recorder
	resource string
	// since is zero from the first list on.
	since  time.Time
	known  map[string]*unstructured.Unstructured
	filled func()
}

func (s *store) put(object any) {
	u := object.(*unstructured.Unstructured)
	key := u.GetNamespace() + "/" + u.GetName()
	if old := s.known[key]; old != nil && old.GetResourceVersion() == u.GetResourceVersion() {
		return
	}
	s.known[key] = u
	s.recorder.add(s.resource, u, false)
}

// Add records a new object.
func (s *store) Add(object any) error { s.put(object); return nil }

// Update records a changed object.
func (s *store) Update(object any) error { s.put(object); return nil }

// Delete records that an object is gone.
func (s *store) Delete(object any) error {
	u := object.(*unstructured.Unstructured)
	delete(s.known, u.GetNamespace()+"/"+u.GetName())
	s.recorder.add(s.resource, u, true)
	return nil
}

// Replace records how a list differs from what was known.
func (s *store) Replace(list []any, _ string) error {
	gone := maps.Clone(s.known)
	for _, object := range list {
		u := object.(*unstructured.Unstructured)
		key := u.GetNamespace() + "/" + u.GetName()
		delete(gone, key)
		if u.GetCreationTimestamp().Time.Before(s.since) {
			s.known[key] = u
			continue
		}
		s.put(u)
	}
	s.since = time.Time{}
	for key, u := range gone {
		delete(s.known, key)
		s.recorder.add(s.resource, u, true)
	}
	s.filled()
	return nil
}

// Resync does nothing.
func (s *store) Resync() error { return nil }
