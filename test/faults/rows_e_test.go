// SPDX-License-Identifier: Apache-2.0

// Rows E: leader election, and two controllers at once.

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/test/faults/proxy"
)

var rowsE = []scenario{
	{row: "E1", title: "the leader is killed",
		quick: 1, oursOnly: noElection,
		cases: one("SIGKILL", withStandby(func(tr *trial, leader, standby *replica) {
			tr.mustNotLead(standby)
			leader.kill()
			tr.scaleFoo("a", 3)
		}))},
	{row: "E2", title: "the leader is stopped during a write: it releases the Lease after the write",
		quick: 1, oursOnly: noElection,
		cases: one("SIGTERM during a write", withStandby(func(tr *trial, leader, standby *replica) {
			// After SIGTERM during a write, the leader keeps the Lease until the write is
			// answered. The last state of the Lease alone could miss that it was given back: the
			// leader may take it again with its next renewal.
			open := tr.holdScale(leader, proxy.Forward)
			before, began := tr.awaitHolder(""), time.Now()
			leader.signal(syscall.SIGTERM)
			tr.pause(quiet)
			renewals := tr.made(since(began), attempted("leases", "update"), succeeded)
			defer open()
			for _, call := range renewals {
				var lease coordinationv1.Lease
				tr.must(json.Unmarshal(call.Answer, &lease))
				if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != before {
					tr.failf("the Lease was released while a write was under way: it was held by %q, then by %q",
						before, holder)
				}
			}
			tr.mustNotLead(standby)
			open()
			tr.mustExit(leader, "after SIGTERM", 0)
		}))},
	{row: "E3", title: "the Lease is taken, or deleted (E6)", quick: 2, oursOnly: noElection, cases: []trialCase{
		{name: "taken during a write", run: withStandby(func(tr *trial, leader, _ *replica) {
			// Another client takes the Lease during a write.
			tr.holdScale(leader, proxy.Forward)
			_, err := tr.leases().Patch(tr.ctx, shipped, types.MergePatchType,
				[]byte(`{"spec":{"holderIdentity":"somebody"}}`), metav1.PatchOptions{})
			tr.must(err)
			tr.mustExit(leader, "after losing the Lease,", 1)
			tr.awaitCall(leader, func(call *proxy.Call) bool { return strings.Contains(call.Fault, proxy.Abandoned) })
		})}, {name: "deleted", run: withStandby(func(tr *trial, _, _ *replica) {
			// Another client deletes the Lease.
			tr.must(tr.leases().Delete(tr.ctx, shipped, metav1.DeleteOptions{}))
			tr.awaitHolder("")
			tr.scaleFoo("a", 3)
		})},
	}},
	{row: "E4", title: "a leader is frozen until another leads, and continues",
		quick: 1, oursOnly: noElection,
		cases: one("during a write", withStandby(func(tr *trial, leader, _ *replica) {
			// A leader is frozen during a write until another leads, and then continues.
			open := tr.holdScale(leader, proxy.Forward)
			before := tr.awaitHolder("")
			leader.signal(syscall.SIGSTOP)
			tr.awaitHolder(before)
			tr.awaitReplicas("a", 3)
			tr.annotate("a", "later")
			tr.scaleFoo("a", 4)
			tr.awaitReplicas("a", 4)
			open() // the write of the first leader arrives now
			leader.signal(syscall.SIGCONT)
		}))},
	{row: "E4", title: "two controllers run at once", quick: 2, cases: eachWorkload(func(tr *trial, w *workload) {
		tr.start()
		w.prepare(tr)
		w.act(tr)
	})},
	{row: "E7", title: "writes take longer than the renew deadline of the Lease",
		quick: 1, oursOnly: noElection,
		cases: one("each write takes 9 s", withStandby(func(tr *trial, leader, standby *replica) {
			before := tr.awaitHolder("")
			leader.proxy.Use(isWork, proxy.Delay(9*time.Second))
			tr.scaleFoo("a", 3)
			tr.createFoo("b", "b", 1)
			tr.stableAndQuiet()
			tr.mustNotLead(standby)
			if tr.awaitHolder("") != before {
				tr.failf("the leader lost the Lease because writes were slow")
			}
		}))},
}

// withStandby starts a leader and, once it leads, a standby.
func withStandby(run func(tr *trial, leader, standby *replica)) func(*trial) {
	return func(tr *trial) {
		const role = shipped + "-election"
		installed, err := tr.cluster.kube.RbacV1().Roles(shipped).Get(tr.ctx, role, metav1.GetOptions{})
		tr.must(err)
		tr.createRole(role, installed.Rules, shipped, shipped)
		// Faster than the defaults, but not so fast that a busy machine loses the Lease.
		flags := []string{
			"-leader-elect", "-leader-elect-resource-namespace=" + tr.ns,
			"-leader-elect-lease-duration=10s", "-leader-elect-renew-deadline=8s", "-leader-elect-retry-period=500ms",
		}
		leader := tr.start(flags...)
		tr.awaitHolder("")
		standby := tr.start(flags...)
		tr.settledFoo("a", "a", 1)
		run(tr, leader, standby)
	}
}

func (tr *trial) leases() typedcoordinationv1.LeaseInterface {
	return tr.cluster.kube.CoordinationV1().Leases(tr.ns)
}

// awaitHolder waits until the Lease has another holder than before, and returns it.
func (tr *trial) awaitHolder(before string) (holder string) {
	tr.await("the Lease has another holder", func(ctx context.Context) error {
		lease, err := tr.leases().Get(ctx, shipped, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder = ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == before {
			return fmt.Errorf("%q holds it", holder)
		}
		return nil
	})
	return holder
}

// mustNotLead fails if a standby has written.
func (tr *trial) mustNotLead(standby *replica) {
	if len(standby.made(isWork)) > 0 {
		tr.failf("the standby wrote")
	}
}
