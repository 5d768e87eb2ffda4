// SPDX-License-Identifier: Apache-2.0

// Waits of trials, and rules that apply to a limited number of requests.

package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// pause gives a controller time to do what it must not do. Use await for what it must do.
func pause(ctx context.Context, howLong time.Duration) {
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// checkNoWrites returns an error if a controller writes a Foo or a Deployment, or tries
// to, within a time.
func (tr *trial) checkNoWrites(ctx context.Context, howLong time.Duration) error {
	since := time.Now()
	pause(ctx, howLong)
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWork() {
			return fmt.Errorf("it must not write, and did: %s", call.Short())
		}
	}
	return ctx.Err()
}

// awaitReplicas waits until the spec of a Deployment has a number of replicas.
func (tr *trial) awaitReplicas(ctx context.Context, name string, want int32) error {
	return tr.await(ctx, fmt.Sprintf("Deployment %s asks for %d Pods", name, want), func(ctx context.Context) error {
		d, err := tr.deployments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && *d.Spec.Replicas != want {
			err = fmt.Errorf("it asks for %d", *d.Spec.Replicas)
		}
		return err
	})
}

// awaitDeployment waits until a Deployment exists.
func (tr *trial) awaitDeployment(ctx context.Context, name string) error {
	return tr.await(ctx, "Deployment "+name+" exists", func(ctx context.Context) error {
		_, err := tr.deployments().Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// once returns a rule that applies to one request only.
func once(decide proxy.Rule) proxy.Rule { return times(1, decide) }

// times returns a rule that applies to a number of requests only.
func times(limit int32, decide proxy.Rule) proxy.Rule {
	var decided atomic.Int32
	return func(call *proxy.Call) proxy.Fault {
		if decided.Load() >= limit {
			return nil
		}
		fault := decide(call)
		if fault != nil && decided.Add(1) > limit {
			return nil
		}
		return fault
	}
}
