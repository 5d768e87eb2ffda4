// SPDX-License-Identifier: Apache-2.0

// Rows E: leader election, and two controllers at once. Rows F: load, one tenant against all,
// and invalid Foos.

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

var rowsE = []*scenario{
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
			// The last state of the Lease alone could miss that it was released: the leader may
			// take it again with its next renewal.
			open := tr.holdScale(leader, proxy.Forward)
			before, began := tr.awaitHolder(""), time.Now()
			leader.signal(syscall.SIGTERM)
			tr.awaitLog(leader, stopping, 1)
			after, stops := before, time.Now()
			tr.await("the Lease is renewed a second later, or released", func(context.Context) error {
				renewals := leader.made(since(began), attempted("leases", "update"), succeeded)
				for _, call := range renewals {
					var lease coordinationv1.Lease
					tr.must(json.Unmarshal(call.Answer, &lease))
					if after = ptr.Deref(lease.Spec.HolderIdentity, ""); after != before {
						return nil
					}
				}
				if last := len(renewals) - 1; last < 0 || renewals[last].Began.Before(stops.Add(time.Second)) {
					return errors.New("it is not")
				}
				return nil
			})
			if after != before {
				tr.failf("the Lease was released during a write: it was held by %q, then by %q", before, after)
			}
			tr.mustNotLead(standby)
			open()
			tr.mustExit(leader, "after SIGTERM", 0)
		}))},
	{row: "E3", title: "the Lease is taken, or deleted (E6)", quick: 2, oursOnly: noElection, cases: []trialCase{
		{name: "taken during a write", run: withStandby(func(tr *trial, leader, _ *replica) {
			tr.holdScale(leader, proxy.Forward)
			_, err := tr.leases().Patch(tr.ctx, shipped, types.MergePatchType,
				[]byte(`{"spec":{"holderIdentity":"somebody"}}`), metav1.PatchOptions{})
			tr.must(err)
			tr.mustExit(leader, "after losing the Lease,", 1)
			tr.awaitCall(leader, func(call *proxy.Call) bool { return strings.Contains(call.Fault, proxy.Abandoned) })
		})}, {name: "deleted", run: withStandby(func(tr *trial, _, _ *replica) {
			tr.must(tr.leases().Delete(tr.ctx, shipped, metav1.DeleteOptions{}))
			tr.awaitHolder("")
			tr.scaleFoo("a", 3)
		})},
	}},
	{row: "E4", title: "a leader is frozen until another leads, then continues",
		quick: 1, oursOnly: noElection,
		cases: one("during a write", withStandby(func(tr *trial, leader, _ *replica) {
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
	{row: "E7", title: "writes take longer than the Lease's renew deadline",
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
		// Faster than the defaults, but not so fast that a busy machine loses the Lease.
		flags := append(tr.electionFlags(), "-leader-elect-lease-duration=10s", "-leader-elect-renew-deadline=8s", "-leader-elect-retry-period=500ms")
		leader := tr.start(flags...)
		tr.awaitHolder("")
		standby := tr.start(flags...)
		tr.settledFoo("a", "a", 1)
		run(tr, leader, standby)
	}
}

// electionFlags returns those of controllers that compete for a Lease in the trial's namespace, and permits that.
func (tr *trial) electionFlags() []string {
	const role = shipped + "-election"
	installed, err := tr.cluster.kube.RbacV1().Roles(shipped).Get(tr.ctx, role, metav1.GetOptions{})
	tr.must(err)
	tr.createRole(role, installed.Rules, shipped, shipped)
	return []string{"-leader-elect", "-leader-elect-resource-namespace=" + tr.ns}
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

var rowsF = []*scenario{
	{row: "F1", title: "a Foo with an invalid deploymentName is older than the CRD's validation rules",
		breaksPlane: true, cases: one("beside a valid one", func(tr *trial) {
			tr.timeout = backoffTimeout
			tr.start()
			tr.withoutRecording(func() {
				// The shipped CRD refuses this Foo. It is in force again after that.
				tr.removeFromCRD("/schema/openAPIV3Schema/properties/spec/properties/deploymentName/x-kubernetes-validations")
				create := func(name string, dryRun ...string) func(context.Context) error {
					return func(ctx context.Context) error {
						foo := newFoo(name, invalidName, 1)
						_, err := tr.foos().Create(ctx, foo, metav1.CreateOptions{DryRun: dryRun})
						return err
					}
				}
				tr.await("the invalid Foo is stored", create("invalid"))
				tr.must(tr.cluster.install(tr.ctx))
				tr.must(testcluster.AwaitAnswer(tr.ctx, tr.timeout, "the shipped CRD is in force",
					create("another", dryRun...), apierrors.IsInvalid))
			})
			tr.whileRefused("invalid", samplev1alpha1.ReasonDeploymentFailed, func() {
				tr.stableAndQuiet()
				tr.mustSay("invalid", invalidName)
				tr.createFoo("a", "a", 1)
				tr.stableAndQuiet()
				tr.scaleFoo("a", 2)
				tr.stableAndQuiet()
			}, func() { tr.renameDeployment("invalid", "valid") })
		})},
	{row: "F5", title: "a hundred Foos at once, and a crash", cases: one("a hundred", func(tr *trial) {
		// As many Foos as a small control plane can take beside the other trials.
		tr.timeout = 6 * waitTimeout // upstream's client sends 5 requests a second
		r := tr.start()
		for i := range 100 {
			name := fmt.Sprintf("a-%d", i)
			tr.createFoo(name, name, 1)
		}
		r.crash()
	})},
	{row: "F6", title: "calls for one namespace hang: another namespace waits for neither a Deployment nor an Event",
		breaksPlane: true, cases: one("slow calls", func(tr *trial) {
			// Calls for one namespace hang, as with a webhook that times out.
			tr.everywhere = true
			r := tr.start()
			other := tr.newNeighbor()
			end := r.proxy.Use(both(isDeploymentWrite, inNamespace(tr.ns)), proxy.Delay(slowCall))
			for i := range 8 {
				name := fmt.Sprintf("slow-%d", i)
				tr.createFoo(name, name, 1)
			}
			tr.awaitCall(r, func(call *proxy.Call) bool { return call.Subresource == "status" && call.Succeeded() })
			for i := range 3 {
				foo := fmt.Sprintf("quick-%d", i)
				waited, _ := other.awaitServed(r, foo)
				other.mustBeSoon("a Foo", waited)
				began := time.Now()
				tr.awaitCall(r, succeeded, inNamespace(other.ns), func(call *proxy.Call) bool {
					return call.Resource == "events" && bytes.Contains(call.Answer, []byte(foo+"."))
				})
				other.mustBeSoon("an Event", time.Since(began))
			}
			end()
			tr.stableAndQuiet()
			other.stableAndQuiet()
		}), why: "as D4"},
	{row: "F6", title: "hundreds of Foos name one Deployment: not all are written when it or its owner changes",
		exempt: true, cases: one("500 Foos", func(tr *trial) {
			// Many Foos ask for the name of one Deployment. What changes in it concerns its owner
			// alone, and only one of the others could be the next.
			r := tr.start()
			tr.settledFoo("first", "shared", 1)
			for i := range askers {
				tr.createFoo(fmt.Sprintf("asker-%d", i), "shared", 1)
			}
			tr.stableAndQuiet()
			before := len(r.made(isWork))
			tr.flap(r, "shared")
			tr.stableAndQuiet()
			if writes := len(r.made(isWork)) - before; writes > statusChanges {
				tr.failf("%d Foos wait for a Deployment whose status changed %d times, which caused %d writes",
					askers, statusChanges, writes)
			}
			before = len(r.made(isWork))
			tr.changeEach(r, "shared", handOvers, func(i int) {
				owner, err := tr.cluster.kube.CoreV1().ConfigMaps(tr.ns).Create(tr.ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("owner-%d", i)},
				}, metav1.CreateOptions{})
				tr.must(err)
				tr.patchDeployment("shared", fmt.Sprintf(`{"metadata":{"ownerReferences":[
		{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"controller":true}]}}`, owner.Name, owner.UID))
			})
			tr.stableAndQuiet()
			if writes := len(r.made(isWork)) - before; writes > handOvers*wokenBy {
				tr.failf("%d Foos wait for a Deployment whose owner changed %d times, which caused %d writes",
					askers, handOvers, writes)
			}
		})},
	{row: "F6", title: "two Foos lose hundreds of Deployments: another namespace does not wait",
		breaksPlane: true, cases: one("obsolete Deployments", func(tr *trial) {
			// A tenant creates Deployments without Pods and names a Foo as their owner, which does
			// not ask for them.
			withoutPods := func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }
			tr.everywhere = true
			for _, foo := range []string{"big-1", "big-2"} {
				tr.createFoo(foo, foo, 1)
				owner := tr.foo(foo)
				for i := range obsolete {
					isOwned := ownedBy(foo, owner.UID, samplev1alpha1.SchemeGroupVersion.String(), "Foo")
					tr.createDeployment(fmt.Sprintf("%s-%d", foo, i), isOwned, withoutPods)
				}
			}
			r := tr.start()
			other := tr.newNeighbor()
			tr.awaitCall(r, isDelete)
			if waited, ahead := other.awaitServed(r, "a"); ahead > maxCallsAhead {
				tr.failf("two Foos lose %d Deployments each, and a Foo in another namespace waited for %d requests, %v",
					obsolete, ahead, waited)
			}
			tr.stableAndQuiet()
			other.stableAndQuiet()
		}), oursOnly: noCleanup},
	{row: "F7", title: "the controller is stopped while an Event is in flight: it writes the Event first",
		quick: 1, cases: one("SIGTERM", func(tr *trial) {
			r := tr.start()
			r.proxy.Use(isEvent, proxy.Delay(time.Second))
			tr.createFoo("a", "a", 1)
			tr.awaitCall(r, func(call *proxy.Call) bool { return call.Subresource == "status" && call.Succeeded() })
			r.signal(syscall.SIGTERM)
			tr.mustExit(r, "after SIGTERM", 0)
			if len(r.made(isEvent, succeeded)) == 0 {
				tr.failf("it exited without writing the Event of its Foo")
			}
			tr.start()
		}), why: "it does not shut down its Event broadcaster"},
	{row: "F7", title: "Events can't be written", quick: 1, cases: throughout(func(r *replica) {
		r.proxy.Use(isEvent, proxy.Hang)
	})},
}

// invalidName is not a valid name of a Deployment.
const invalidName = "Not A Name"

// removeFromCRD removes a part of a version of the shipped CRD, without waiting until that is
// in force.
func (tr *trial) removeFromCRD(path string) {
	tr.changedCRD = true
	patch := fmt.Sprintf(`[{"op":"remove","path":"/spec/versions/0%s"}]`, path)
	tr.kubectl("patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+patch)
}

// newNeighbor returns another tenant of the same controllers, in its own namespace.
func (tr *trial) newNeighbor() *trial {
	ns, err := tr.cluster.createNamespace(tr.ctx)
	tr.must(err)
	other := *tr
	other.ns, other.expected = ns, newExpected()
	return &other
}

// awaitServed creates a Foo, and returns how long its Deployment took, and how many
// requests for other namespaces the controller made meanwhile.
func (tr *trial) awaitServed(r *replica, foo string) (waited time.Duration, ahead int) {
	began := time.Now()
	tr.createFoo(foo, foo, 1)
	created := tr.awaitCall(r, isCreate, succeeded, inNamespace(tr.ns), since(began)).Began
	others := r.made(since(began), func(call *proxy.Call) bool {
		return call.Began.Before(created) && call.Namespace != tr.ns && call.Namespace != ""
	})
	return created.Sub(began), len(others)
}

const (
	// obsolete is how many Deployments are hung on each of two Foos.
	obsolete = 400
	// maxCallsAhead bounds the requests for a tenant before it is another's turn.
	maxCallsAhead = 100
)

const (
	// slowCall is how long calls for a tenant take, and maxWait how long another tenant's
	// Foo may wait beside them.
	slowCall = 10 * time.Second
	maxWait  = 3 * time.Second
)

func (tr *trial) mustBeSoon(what string, waited time.Duration) {
	if waited > maxWait {
		tr.failf("calls for one namespace take %v each, and %s in another one waited %v",
			slowCall, what, waited.Round(time.Millisecond))
	}
}

const (
	// askers is how many Foos ask for the name of one Deployment.
	askers = 500
	// handOvers is how often that Deployment gets another owner, and wokenBy how many of the
	// Foos that wait for it may be written because of one.
	handOvers = 5
	wokenBy   = 18
)
