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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// below has the objects of a namespace that Deployments lead to, and its events.
type below struct {
	replicaSets []appsv1.ReplicaSet
	pods        []corev1.Pod
	events      []corev1.Event
	// missing are the errors of what the account may not read.
	missing []error
}

// below reads a namespace. What the account may not read is missing.
func (c *cluster) below(ctx context.Context) (*below, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	found, all := &below{}, metav1.ListOptions{}
	sets, err := client.AppsV1().ReplicaSets(c.namespace).List(ctx, all)
	if err == nil {
		found.replicaSets = sets.Items
	}
	pods, podsErr := client.CoreV1().Pods(c.namespace).List(ctx, all)
	if podsErr == nil {
		found.pods = pods.Items
	}
	events, eventsErr := client.CoreV1().Events(c.namespace).List(ctx, all)
	if eventsErr == nil {
		found.events = events.Items
	}
	for _, err := range []error{err, podsErr, eventsErr} {
		switch {
		case apierrors.IsForbidden(err):
			found.missing = append(found.missing, err)
		case err != nil:
			return nil, err
		}
	}
	return found, nil
}

// foo reads one Foo.
func (c *cluster) foo(ctx context.Context, name string) (*samplev1alpha1.Foo, error) {
	client, err := clientset.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	foo, err := client.SamplecontrollerV1alpha1().Foos(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Foo %q in the namespace %q", name, c.namespace)
	}
	return foo, err
}

// lease reads the controller's Lease.
func (c *cluster) lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && lease.Spec.RenewTime == nil {
		return nil, errors.New("it has never been renewed")
	}
	return lease, err
}

// eventsOf returns the events about the Foo's objects, the newest first.
func (b *below) eventsOf(foo types.UID, nodes []node) []*corev1.Event {
	about := map[types.UID]bool{foo: true}
	var add func([]node)
	add = func(nodes []node) {
		for _, n := range nodes {
			about[n.object.GetUID()] = true
			add(n.below)
		}
	}
	add(nodes)
	var events []*corev1.Event
	for i := range b.events {
		if event := &b.events[i]; about[event.InvolvedObject.UID] {
			events = append(events, event)
		}
	}
	slices.SortFunc(events, func(a, b *corev1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	return events
}
