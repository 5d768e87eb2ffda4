// SPDX-License-Identifier: Apache-2.0

// Rows about load and limits: resyncs, quotas, lost events, many Foos.

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// resyncFlags returns the flags for a controller that resyncs, and a time in which it
// does so at least twice.
func (tr *trial) resyncFlags() (flags []string, howLong time.Duration) {
	if tr.subject.resyncs {
		return nil, 65 * time.Second
	}
	return []string{"-resync=1s"}, 5 * time.Second
}

// atRest checks that Foos that need no change cause no writes, not even at a resync.
func atRest(writeCounts) []trialCase {
	return []trialCase{{"some resyncs", func(ctx context.Context, tr *trial) error {
		flags, howLong := tr.resyncFlags()
		if _, err := tr.start(flags...); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		since := time.Now()
		pause(ctx, howLong)
		writes := 0
		for _, call := range tr.calls() {
			if call.Began.After(since) && call.IsWrite() {
				writes++
			}
		}
		if writes > 0 {
			return fmt.Errorf("nothing happens, and it writes: %d requests for two Foos in %v", writes, howLong)
		}
		return tr.stableAndQuiet(ctx)
	}}}
}

// exhaustedQuota is D11: a quota refuses a Deployment, and is raised.
func exhaustedQuota(writeCounts) []trialCase {
	return []trialCase{{"and raised", func(ctx context.Context, tr *trial) error {
		tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
		if _, err := tr.start(); err != nil {
			return err
		}
		quotas := tr.cluster.kube.CoreV1().ResourceQuotas(tr.ns)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}}
		quota.Spec.Hard = corev1.ResourceList{"count/deployments.apps": resource.MustParse("1")}
		if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
			return err
		}
		err := tr.await(ctx, "the quota is in force", func(ctx context.Context) error {
			found, err := quotas.Get(ctx, "few", metav1.GetOptions{})
			if err == nil && len(found.Status.Used) == 0 {
				err = errors.New("status.used is empty")
			}
			return err
		})
		if err != nil {
			return err
		}
		tr.refused["b"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		delete(tr.refused, "b")
		quota.Spec.Hard["count/deployments.apps"] = resource.MustParse("9")
		_, err = quotas.Update(ctx, quota, metav1.UpdateOptions{})
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}}}
}

// withoutEvents is F7: Events can't be written, and nothing waits for them.
func withoutEvents(writes writeCounts) []trialCase {
	return throughout(writes, func(r *replica) {
		r.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if call.Resource == "events" {
				return proxy.Hang
			}
			return nil
		})
	})
}

// manyFoos is F5: as many Foos as a small control plane can take beside the other trials.
func manyFoos(writeCounts) []trialCase {
	return []trialCase{{"a hundred", func(ctx context.Context, tr *trial) error {
		tr.timeout = 6 * waitTimeout // upstream's client sends 5 requests a second
		r, err := tr.start()
		if err != nil {
			return err
		}
		const count = 100
		for i := range count {
			if err := tr.createFoo(ctx, fmt.Sprintf("a-%d", i), fmt.Sprintf("a-%d", i), 1); err != nil {
				return err
			}
		}
		r.process.crash()
		return tr.stableAndQuiet(ctx)
	}}}
}
