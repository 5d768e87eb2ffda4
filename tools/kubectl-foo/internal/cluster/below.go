// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Below has the objects that Deployments lead to, and the Events.
type Below struct {
	ReplicaSets []*appsv1.ReplicaSet
	Pods        []*corev1.Pod
	Events      []*corev1.Event
	// Missing are the errors of what the account may not read.
	Missing []error
}

// Below reads a namespace. What the account may not read is missing.
func (c *Cluster) Below(ctx context.Context) (*Below, error) {
	found, all := &Below{}, metav1.ListOptions{}
	sets, setsErr := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, all)
	if setsErr == nil {
		found.ReplicaSets = pointers(sets.Items)
	}
	pods, podsErr := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, all)
	if podsErr == nil {
		found.Pods = pointers(pods.Items)
	}
	events, eventsErr := c.Kube.CoreV1().Events(c.Namespace).List(ctx, all)
	if eventsErr == nil {
		found.Events = pointers(events.Items)
	}
	for resource, err := range map[string]error{"replicasets.apps": setsErr, "pods": podsErr, "events": eventsErr} {
		switch {
		case apierrors.IsForbidden(err):
			found.Missing = append(found.Missing, Describe(err, "list", resource))
		case err != nil:
			return nil, Describe(err, "list", resource)
		}
	}
	return found, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Lease reads the controller's Lease.
func (c *Cluster) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease, err := c.Kube.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, Describe(err, "get", "leases.coordination.k8s.io")
	case err != nil:
		return nil, err
	case lease.Spec.RenewTime == nil:
		return nil, errors.New("it has never been renewed")
	}
	return lease, nil
}
