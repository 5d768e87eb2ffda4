// SPDX-License-Identifier: Apache-2.0

// Rows F: load, one tenant against all, invalid Foos, and the row "rest".

package faults

import (
	"bytes"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

var rowsF = []scenario{
	{row: "F1", title: "a Foo with an invalid Deployment name was stored before the CRD had its validation rules",
		breaksPlane: true, cases: one("beside a valid one", func(tr *trial) {
			tr.timeout = backoffTimeout
			tr.start()
			tr.withoutRecording(func() {
				// The shipped CRD refuses this Foo. It is in force again after that.
				tr.removeFromCRD("/schema/openAPIV3Schema/properties/spec/properties/deploymentName/x-kubernetes-validations")
				create := func(name string, dryRun ...string) func(context.Context) error {
					return func(ctx context.Context) error {
						foo := newFoo(name, invalidName, new(int32(1)))
						_, err := tr.foos().Create(ctx, foo, metav1.CreateOptions{DryRun: dryRun})
						return err
					}
				}
				tr.await("the invalid Foo is stored", create("invalid"))
				tr.must(tr.cluster.install(tr.ctx))
				tr.must(testcluster.AwaitAnswer(tr.ctx, tr.timeout, "the shipped CRD is in force",
					create("another", dryRun()...), apierrors.IsInvalid))
			})
			tr.whileRefused("invalid", samplev1alpha1.ReasonDeploymentFailed, func() {
				tr.stableAndQuiet()
				tr.mustSay("invalid", invalidName)
				tr.createFoo("a", "a", 1)
				tr.stableAndQuiet()
				tr.scaleFoo("a", 2)
				tr.pause(4 * quiet)
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
	{row: "F6", title: "calls for one namespace hang: another namespace waits neither for a Deployment nor for an Event",
		breaksPlane: true, cases: one("slow calls", func(tr *trial) {
			// Calls for one namespace hang, as with a webhook that times out. The controller knows
			// which namespace that is once it has ended a sync of it.
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
	{row: "F6", title: "hundreds of Foos ask for one Deployment: its changes, and changes of its owner, do not write to all of them",
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
				tr.failf("%d Foos wait for a Deployment whose status changed %d times: that caused %d writes",
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
				tr.failf("%d Foos wait for a Deployment whose owner changed %d times: that caused %d writes",
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
				tr.failf("two Foos lose %d Deployments each, and one of another namespace waited for %d requests, %v",
					obsolete, ahead, waited)
			}
			tr.stableAndQuiet()
			other.stableAndQuiet()
		}), oursOnly: noCleanup},
	{row: "F7", title: "Events can't be written", quick: 1, cases: throughout(func(r *replica) {
		r.proxy.Use(func(call *proxy.Call) bool { return call.Resource == "events" }, proxy.Hang)
	})},
}

var rowsAtRest = []scenario{{row: "rest", title: "at rest nothing is written, not even at a resync",
	quick: 1, cases: one("some resyncs", func(tr *trial) {
		flags, howLong := tr.resyncFlags()
		tr.start(flags...)
		tr.createFoo("a", "a", 1)
		tr.settledFoo("b", "b", 1)
		began := time.Now()
		tr.pause(howLong)
		if writes := tr.made(since(began), isWrite); len(writes) > 0 {
			tr.failf("nothing happens, and it writes: %d requests for two Foos in %v", len(writes), howLong)
		}
	}),
	why: "each resync, every 30 s, writes a status and an Event for each Foo"}}

// invalidName is not a valid name of a Deployment.
const invalidName = "Not A Name"

// removeFromCRD removes a part of a version of the shipped CRD, without waiting until that is
// in force.
func (tr *trial) removeFromCRD(path string) {
	tr.changedCRD = true
	patch := fmt.Sprintf(`[{"op":"remove","path":"/spec/versions/0%s"}]`, path)
	tr.must(tr.cluster.kubectl(tr.ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+patch))
}

// newNeighbor returns another tenant of the same controllers, in a namespace of its own.
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
		tr.failf("calls for a namespace take %v each, and %s of another one waited %v",
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
