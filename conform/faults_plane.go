// SPDX-License-Identifier: Apache-2.0

// Faults of the control plane and of leaders, and a quota.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// lostChanges is the least number of versions that a restore goes back: more than what is
// written while the case is judged.
const lostChanges = 1000

// quota forbids objects of a resource until after the step.
func quota(tr *trial, act func() error) error {
	quotas := tr.plane.Kube.CoreV1().ResourceQuotas(tr.ns)
	name := corev1.ResourceName("count/" + tr.run.Case.Resource)
	_, err := quotas.Create(tr.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quotaName},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	inForce := func(ctx context.Context) (bool, error) {
		q, err := quotas.Get(ctx, quotaName, metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, nil
	}
	if err := wait.PollUntilContextTimeout(tr.ctx, pollPeriod, stepWait, true, inForce); err != nil {
		return fmt.Errorf("the quota is not in force: %w", err)
	}
	if err := act(); err != nil {
		return err
	}
	if err := tr.pause(outage); err != nil {
		return err
	}
	return quotas.Delete(tr.ctx, quotaName, metav1.DeleteOptions{})
}

var errNoLeader = errors.New("no replica wrote a Lease in the namespace of its kubeconfig: check leaderElection in the settings")

// leader waits until a replica other than not leads: it wrote a Lease last.
func (tr *trial) leader(not *replica) (*replica, error) {
	var leader *replica
	leads := func(context.Context) (bool, error) {
		var at time.Time
		for _, p := range tr.replicas {
			for _, call := range p.proxy.Calls() {
				if call.Resource == "leases" && call.IsWrite() && call.Succeeded() && call.Began.After(at) {
					leader, at = p, call.Began
				}
			}
		}
		return leader != nil && leader != not, nil
	}
	if wait.PollUntilContextTimeout(tr.ctx, pollPeriod, slowPath, true, leads) != nil {
		return nil, errNoLeader
	}
	return leader, nil
}

// leaderKilled kills the leader for good.
func leaderKilled(tr *trial, act func() error) error {
	leader, err := tr.leader(nil)
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	leader.kill(true)
	return nil
}

// leaderFrozen stops the leader until another leads.
func leaderFrozen(tr *trial, act func() error) error {
	leader, err := tr.leader(nil)
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	leader.signal(syscall.SIGSTOP, false)
	_, err = tr.leader(leader)
	tr.mayEnd(leader)
	leader.signal(syscall.SIGCONT, false)
	return err
}

// leaderRobbed takes the Lease in the name of a holder that never renews it.
func leaderRobbed(tr *trial, act func() error) error {
	leader, err := tr.leader(nil)
	if err != nil {
		return err
	}
	leases := tr.plane.Kube.CoordinationV1().Leases(tr.ns)
	all, err := leases.List(tr.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	tr.mayEnd(leader)
	for _, lease := range all.Items {
		patch := fmt.Sprintf(`{"spec":{"holderIdentity":"conform","renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		if _, err := leases.Patch(tr.ctx, lease.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return act()
}

// mayEnd says that a leader that lost its Lease may end, as client-go's does.
func (tr *trial) mayEnd(leader *replica) {
	leader.mu.Lock()
	defer leader.mu.Unlock()
	leader.asked = true
}

// restarting kills components of the control plane while the step happens, and starts them
// again after a while.
func restarting(components ...string) injection {
	return func(tr *trial, act func() error) error {
		if err := act(); err != nil {
			return err
		}
		tr.plane.Kill(components...)
		if len(components) > 1 {
			if err := tr.pause(2 * outage); err != nil {
				return err
			}
		}
		return tr.plane.Start(tr.ctx, components...)
	}
}

func etcdFrozen(tr *trial, act func() error) error {
	if err := act(); err != nil {
		return err
	}
	store := tr.plane.Process(testcluster.Etcd)
	defer func() { _ = store.Signal(syscall.SIGCONT) }() // it may have ended
	if err := store.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return tr.pause(outage)
}

// restored puts the store of before the step back after it, and does the step again. All
// other components are restarted with it, as the procedure for a restore says.
func restored(tr *trial, act func() error) error {
	backup, live := filepath.Join(tr.plane.Data, "backup"), filepath.Join(tr.plane.Data, "etcd")
	tr.plane.Kill(testcluster.Etcd, testcluster.APIServer)
	if err := os.CopyFS(backup, os.DirFS(live)); err != nil {
		return err
	}
	if err := tr.plane.Start(tr.ctx, testcluster.Etcd, testcluster.APIServer); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	if err := tr.settle(tr.run.Case.Step, shortQuiet); err != nil {
		return err
	}
	for i := range lostChanges {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"conform.example.com/age":"%d"}}}`, i)
		_, err := tr.plane.Kube.CoreV1().Namespaces().Patch(tr.ctx, tr.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	// The API server answers watches with 429 while it fills its caches. The proxy does so a little
	// longer, so that every watch is continued at an old version.
	warm := tr.replicas[0].proxy.Use((*proxy.Call).IsWatch, proxy.Refuse(http.StatusTooManyRequests))
	defer warm()
	tr.plane.Kill(testcluster.AllComponents()...)
	if err := os.RemoveAll(live); err != nil {
		return err
	}
	if err := os.Rename(backup, live); err != nil {
		return err
	}
	if err := tr.plane.Start(tr.ctx, testcluster.AllComponents()...); err != nil {
		return err
	}
	// A store of the past has other versions: what was recorded has no order with what follows,
	// and watches would wait for versions that are yet to come.
	tr.recorder.forget(tr.ns)
	tr.recorder.watch(tr.ctx, tr.began)
	tr.run.Steps = slices.Delete(tr.run.Steps, tr.run.Case.Step, tr.run.Case.Step+1)
	return act()
}
