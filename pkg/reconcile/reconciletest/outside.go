// SPDX-License-Identifier: Apache-2.0

// What is outside the cluster, which calls change.

package reconciletest

import (
	"context"
	"sync"
	"time"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// spreadTime is that in which a start spreads its first calls outside the cluster.
const spreadTime = time.Minute

// Outside returns what there is outside the cluster in the run of a simulation in which a call is made.
func Outside(ctx context.Context) *sync.Map {
	return &ctx.Value(connectionKey{}).(*connection).cluster.outside //nolint:forcetypeassert // each controller has one
}

// longest returns how long a run may take to come to rest, if that is longer than a time. Its caller holds the lock.
func (c *cluster) longest(rest time.Duration) time.Duration {
	for _, reference := range c.owner.References {
		if c.isPolled(reference.Kind) {
			rest = max(rest, recoveryTime+reference.Poll*11/10)
		}
	}
	if c.owner.Outside != nil {
		rest = max(rest, recoveryTime+spreadTime)
	}
	return rest
}

func (c *cluster) checkOutside(w rules.World) {
	if c.owner.Outside == nil {
		return
	}
	for _, wrong := range c.owner.Outside(&c.outside, w.Objects) {
		c.violationf("at rest: outside the cluster, %s", wrong)
	}
}
