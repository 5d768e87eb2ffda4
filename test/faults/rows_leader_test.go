// SPDX-License-Identifier: Apache-2.0

// Rows E: leader election, and two controllers at once.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/test/faults/proxy"
)

// leaseFlags make elections faster than the defaults do, but not so fast that a busy
// machine loses the Lease.
func (tr *trial) leaseFlags() []string {
	return []string{
		"-leader-elect", "-leader-elect-resource-namespace=" + tr.ns,
		"-leader-elect-lease-duration=10s", "-leader-elect-renew-deadline=8s", "-leader-elect-retry-period=500ms",
	}
}

// startTwo starts a leader and, once it leads, a standby.
func (tr *trial) startTwo(ctx context.Context) (leader, standby *replica, err error) {
	if err := tr.grantLeasePermissions(ctx); err != nil {
		return nil, nil, err
	}
	if leader, err = tr.start(tr.leaseFlags()...); err != nil {
		return nil, nil, err
	}
	if err := tr.awaitHolder(ctx, ""); err != nil {
		return nil, nil, err
	}
	standby, err = tr.start(tr.leaseFlags()...)
	return leader, standby, errors.Join(err, tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx))
}

// grantLeasePermissions grants the shipped account the shipped permissions to a Lease in
// the trial's namespace.
func (tr *trial) grantLeasePermissions(ctx context.Context) error {
	const role = shippedName + "-election"
	rbac := tr.cluster.kube.RbacV1()
	shipped, err := rbac.Roles(shippedName).Get(ctx, role, metav1.GetOptions{})
	if err != nil {
		return err
	}
	name := metav1.ObjectMeta{Name: role}
	if _, err := rbac.Roles(tr.ns).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: shipped.Rules}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = rbac.RoleBindings(tr.ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: shippedName, Name: shippedName}},
	}, metav1.CreateOptions{})
	return err
}

func (tr *trial) holder(ctx context.Context) (string, error) {
	lease, err := tr.cluster.kube.CoordinationV1().Leases(tr.ns).Get(ctx, shippedName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// watchHolders begins to watch the Lease. The function that it returns ends the watch and
// returns the holders of all states since. To look at the last state alone could miss one:
// a leader that has given the Lease back may take it again with its next renewal.
func (tr *trial) watchHolders(ctx context.Context) (func() []string, error) {
	watching, err := tr.cluster.kube.CoordinationV1().Leases(tr.ns).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: shippedName}))
	if err != nil {
		return nil, err
	}
	var holders []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for event := range watching.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok {
				holders = append(holders, ptr.Deref(lease.Spec.HolderIdentity, ""))
			}
		}
	})
	return func() []string {
		watching.Stop()
		reading.Wait()
		return holders
	}, nil
}

// awaitHolder waits until the Lease has another holder than before.
func (tr *trial) awaitHolder(ctx context.Context, before string) error {
	return tr.await(ctx, "the Lease has another holder", func(ctx context.Context) error {
		now, err := tr.holder(ctx)
		if err == nil && (now == "" || now == before) {
			err = fmt.Errorf("%q holds it", now)
		}
		return err
	})
}

// leaderCase is a case with a leader and a standby.
func leaderCase(name string, run func(ctx context.Context, tr *trial, leader, standby *replica) error) trialCase {
	return trialCase{name, func(ctx context.Context, tr *trial) error {
		leader, standby, err := tr.startTwo(ctx)
		if err != nil {
			return err
		}
		if err := run(ctx, tr, leader, standby); err != nil {
			return err
		}
		return tr.stableAndQuiet(ctx)
	}}
}

// leaderKilled is E1: the leader is killed, and the standby takes over.
func leaderKilled(writeCounts) []trialCase {
	return []trialCase{leaderCase("SIGKILL", func(ctx context.Context, tr *trial, leader, standby *replica) error {
		if standby.proxy.Writes() > 0 {
			return errors.New("the standby wrote")
		}
		leader.process.kill()
		return tr.scaleFoo(ctx, "a", 3)
	})}
}

// holdScale scales Foo a and holds the leader's write to its Deployment.
func (tr *trial) holdScale(ctx context.Context, leader *replica, release <-chan struct{}) error {
	leader.proxy.Use(once(func(call *proxy.Call) proxy.Fault {
		if isUpdateAttempt(call) {
			return proxy.Hold(release)
		}
		return nil
	}))
	if err := tr.scaleFoo(ctx, "a", 3); err != nil {
		return err
	}
	// Another call may have a fault, too: the watch of the Lease that a standby ends when it leads.
	return tr.awaitCall(ctx, leader, func(call proxy.Call) bool { return isUpdateAttempt(&call) && call.Fault != "" })
}

// leaderStopped is E2: after SIGTERM during a write, the leader keeps the Lease until the
// write is answered.
func leaderStopped(writeCounts) []trialCase {
	return []trialCase{leaderCase("SIGTERM during a write", func(ctx context.Context, tr *trial, leader, standby *replica) error {
		release := make(chan struct{})
		if err := tr.holdScale(ctx, leader, release); err != nil {
			return err
		}
		held, err := tr.holder(ctx)
		if err != nil {
			return err
		}
		holders, err := tr.watchHolders(ctx)
		if err != nil {
			return err
		}
		leader.process.signal(syscall.SIGTERM)
		pause(ctx, quiet)
		others := slices.DeleteFunc(holders(), func(holder string) bool { return holder == held })
		close(release)
		if len(others) > 0 || standby.proxy.Writes() > 0 {
			return fmt.Errorf("the Lease was released while a write was under way: it was held by %q, then by %q", held, others)
		}
		if code := leader.process.exitCode(); code != 0 {
			return fmt.Errorf("after SIGTERM the leader exited with code %d", code)
		}
		return nil
	})}
}

// leaseLost is E3 and E6: another client takes or deletes the Lease.
func leaseLost(writeCounts) []trialCase {
	return []trialCase{
		leaderCase("taken during a write", func(ctx context.Context, tr *trial, leader, _ *replica) error {
			never := make(chan struct{})
			if err := tr.holdScale(ctx, leader, never); err != nil {
				return err
			}
			_, err := tr.cluster.kube.CoordinationV1().Leases(tr.ns).Patch(ctx, shippedName, types.MergePatchType,
				[]byte(`{"spec":{"holderIdentity":"somebody"}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			if code := leader.process.exitCode(); code != 1 {
				return fmt.Errorf("after losing the Lease, the leader exited with code %d", code)
			}
			return tr.awaitCall(ctx, leader, func(call proxy.Call) bool { return call.Abandoned })
		}),
		leaderCase("deleted", func(ctx context.Context, tr *trial, _, _ *replica) error {
			err := tr.cluster.kube.CoordinationV1().Leases(tr.ns).Delete(ctx, shippedName, metav1.DeleteOptions{})
			if err != nil {
				return err
			}
			if err := tr.awaitHolder(ctx, ""); err != nil {
				return err
			}
			return tr.scaleFoo(ctx, "a", 3)
		}),
	}
}

// leaderFrozen is E4: a leader is frozen during a write until another leads, and then
// continues.
func leaderFrozen(writeCounts) []trialCase {
	return []trialCase{leaderCase("during a write", func(ctx context.Context, tr *trial, leader, _ *replica) error {
		release := make(chan struct{})
		if err := tr.holdScale(ctx, leader, release); err != nil {
			return err
		}
		held, err := tr.holder(ctx)
		if err != nil {
			return err
		}
		leader.process.signal(syscall.SIGSTOP)
		if err := tr.awaitHolder(ctx, held); err != nil {
			return err
		}
		err = errors.Join(tr.awaitReplicas(ctx, "a", 3), tr.annotate(ctx, "a", "later"), tr.scaleFoo(ctx, "a", 4), tr.awaitReplicas(ctx, "a", 4))
		close(release) // the write of the first leader arrives now
		leader.process.signal(syscall.SIGCONT)
		return err
	})}
}

// slowWrites is E7: writes take longer than the renew deadline of the Lease.
func slowWrites(writeCounts) []trialCase {
	return []trialCase{leaderCase("each write takes 9 s", func(ctx context.Context, tr *trial, leader, standby *replica) error {
		held, err := tr.holder(ctx)
		if err != nil {
			return err
		}
		leader.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if call.IsWork() {
				return proxy.Delay(9 * time.Second)
			}
			return nil
		})
		if err := errors.Join(tr.scaleFoo(ctx, "a", 3), tr.createFoo(ctx, "b", "b", 1), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		now, err := tr.holder(ctx)
		if err == nil && (now != held || standby.proxy.Writes() > 0) {
			err = errors.New("the leader lost the Lease because writes were slow")
		}
		return err
	})}
}

// twoControllers is the worst case of E4: two controllers without leader election.
func twoControllers(writes writeCounts) []trialCase {
	var cases []trialCase
	for _, w := range passing(writes) {
		cases = append(cases, trialCase{w.name, func(ctx context.Context, tr *trial) error {
			if _, err := tr.start(); err != nil {
				return err
			}
			_, err := w.run(ctx, tr)
			return err
		}})
	}
	return cases
}
