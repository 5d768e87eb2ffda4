// SPDX-License-Identifier: Apache-2.0

// Convergence: when the audit log says that Foos have converged, whatever program makes
// them. The benchmark watches nothing, and so takes little CPU from the measured programs.

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/sample-controller/test/audit"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// readInterval is the time between two readings of the audit log. It does not affect the
// times of convergence, which are in the log.
const readInterval = 50 * time.Millisecond

// lacks is what a Foo needs to have converged.
type lacks struct{ deployment, status, available bool }

// Convergence waits for Foos to converge.
//
// Without kube-controller-manager a Foo has converged when the measured program has created
// a Deployment with the name that the Foo asks for, and has written the Foo's status. With
// kube-controller-manager it has converged when its status reports that its Pods are
// available.
type Convergence struct {
	log *audit.Log
	// open holds the Foos that have not converged, by namespace and name. The Foos ask for
	// Deployments of their own names.
	open  map[string]lacks
	times []time.Time
}

// Watch starts to watch for the convergence of Foos that have been created.
func (c *Cluster) Watch(foos ...*samplev1alpha1.Foo) (*Convergence, error) {
	log, err := audit.OpenAtEnd(c.AuditLog())
	if err != nil {
		return nil, err
	}
	open := map[string]lacks{}
	for _, foo := range foos {
		whole := c.options.Whole
		open[foo.Namespace+"/"+foo.Name] = lacks{deployment: !whole, status: !whole, available: whole}
	}
	return &Convergence{log: log, open: open}, nil
}

// Wait returns when all Foos have converged, with the times in ascending order. It returns
// an error when ctx or the measured program ends.
func (c *Convergence) Wait(ctx context.Context, ended <-chan struct{}) ([]time.Time, error) {
	ticker := time.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		writes, err := c.log.Next()
		if err != nil {
			return nil, err
		}
		c.read(writes)
		if len(c.open) == 0 {
			slices.SortFunc(c.times, time.Time.Compare)
			return c.times, nil
		}
		select {
		case <-ticker.C:
		case <-ended:
			return nil, errors.New("the program ended before all Foos had converged")
		case <-ctx.Done():
			return nil, fmt.Errorf("%d Foos have converged, %d have not: %w", len(c.times), len(c.open), context.Cause(ctx))
		}
	}
}

func (c *Convergence) read(writes []audit.Write) {
	for _, write := range writes {
		key := write.Namespace + "/" + write.Name
		left, isOpen := c.open[key]
		if !isOpen || write.User != User || !write.OK() {
			continue
		}
		switch write.Verb + " " + write.Path() {
		case "create deployments":
			left.deployment = false
		case "update foos/status", "patch foos/status":
			left.status = false
			left.available = left.available && !isAvailable(write.Response)
		}
		c.open[key] = left
		if left == (lacks{}) {
			delete(c.open, key)
			c.times = append(c.times, write.Done)
		}
	}
}

// isAvailable reports whether a Foo's status says that its Pod is available.
func isAvailable(foo *audit.Object) bool {
	return foo != nil && foo.Status.AvailableReplicas != nil && *foo.Status.AvailableReplicas == 1
}
