// SPDX-License-Identifier: Apache-2.0

// Rows G: what the controller reports, and how often, while something else fails. Of
// upstream's controller, which has no conditions, they check the rest: what it writes, how
// often, and whether it keeps running. Here are G1 to G6.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

var rowsG = []*scenario{
	{row: "G1", title: "a required webhook is down (500): the Foo reports it, and existing Pods keep serving",
		quick: 3, cases: []trialCase{
			{name: "a create", run: func(tr *trial) {
				tr.webhookDown("b", `"b" could not be created`, func() { tr.createFoo("b", "b", 1) })
			}},
			{name: "a scale", run: func(tr *trial) {
				tr.webhookDown("a", `"one" could not be updated`, func() { tr.scaleFoo("a", 3) })
			}},
			{name: "a rename", needs: "rename", run: func(tr *trial) {
				tr.webhookDown("a", `"two" could not be created`, func() { tr.renameDeployment("a", "two") })
			}},
		}},
	{row: "G2", title: "writes for two Foos get a 429 with Retry-After: other Foos do not wait",
		quick: 2,
		why:   "client-go waits for Retry-After within the call, up to ten times, and there are only two workers",
		cases: []trialCase{
			{name: "by a Status", run: func(tr *trial) { tr.throttled(proxy.RetryAfter(retryAfter)) }},
			{name: "by a header alone", run: func(tr *trial) { tr.throttled(proxy.RetryAfterText(retryAfter)) }},
		}},
	{row: "G3", title: "an admission policy changes each written Deployment (D12): the Foo reports the difference, and no write follows",
		quick: 3, cases: []trialCase{
			{name: "the replicas before the Foo is changed", run: func(tr *trial) {
				tr.cappedByPolicy(func() { tr.scaleFoo("a", 4) })
			}},
			{name: "the replicas before the Deployment is changed", run: func(tr *trial) {
				tr.cappedByPolicy(func() { tr.scaleDeployment("a", 1) })
			}},
			{name: "the image", run: func(tr *trial) {
				// The policy replaces the image. The shipped policy forbids this image to the account
				// that it applies to.
				const mirrored = "mirror.example.com/nginx:latest"
				tr.account = tr.cluster.exempt
				isMirrored := func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == mirrored }
				mirror := mutation{"/spec/template/spec/containers/0/image", fmt.Sprintf("%q", mirrored), isMirrored}
				tr.mutatedByPolicy(mirror, 0, func() { tr.scaleFoo("a", 4) }, func(int32) string { return mirrored })
			}},
		},
		why: "each Update drops the revision annotation; the Deployment controller restores it, which triggers the next sync"},
	{row: "G4", title: "an update is rejected: it is not repeated with each change of the Deployment's status",
		quick: 1, cases: one("a condition", func(tr *trial) {
			// A change of the status says nothing about the refusal.
			r := tr.startWithFoo("a", 1)
			tr.deny("a", updates, "")
			tr.whileRefused("a", samplev1alpha1.ReasonDeploymentFailed, func() {
				tr.scaleFoo("a", 3)
				tr.stableAndQuiet()
				tr.mustSay("a", denialText)
				began := time.Now()
				tr.flap(r, "a")
				tr.stableAndQuiet()
				most := backoffAttempts(time.Since(began))
				// A write that lost a race with a change of the status was not rejected, and is repeated at once.
				wasJudged := func(call *proxy.Call) bool { return call.Code != http.StatusConflict }
				if attempts := len(r.made(since(began), isDeploymentWrite, wasJudged)); attempts > most {
					tr.failf("it repeated a rejected update %d times while the Deployment's status changed %d times; a back-off does at most %d times",
						attempts, statusChanges, most)
				}
			}, tr.withdraw)
			tr.scaleFoo("a", 2) // the new spec ends the back-off
		}),
		why: "each event of the Deployment adds the Foo's key to the queue at once, despite its back-off"},
	{row: "G5", title: "a Deployment is paused during a rollout",
		quick: 1, cases: one("by a user", func(tr *trial) {
			tr.startWithFoo("a", 2)
			tr.patchDeployment("a", `{"spec":{"paused":true}}`)
			tr.stableAndQuiet()
			tr.whileRefused("a", samplev1alpha1.ReasonProgressing, func() {
				tr.patchDeployment("a", `{"spec":{"template":{"metadata":{"annotations":{"somebody":"mine"}}}}}`)
				// Such a status may come some seconds late.
				tr.awaitReported("a", "is paused")
				tr.stableAndQuiet()
				tr.serves("a", 2)
			}, func() { tr.patchDeployment("a", `{"spec":{"paused":null}}`) })
		}), oursOnly: noConditions},
	{row: "G6", title: "the CRD has no status subresource",
		quick: 1, breaksPlane: true, cases: one("no subresource", func(tr *trial) {
			isUnknown := func(_ *samplev1alpha1.Foo, err error) bool { return apierrors.IsNotFound(err) }
			tr.crdMismatch("/subresources/status", isUnknown)
		}),
		why: "it retries after a 404, as after any error"},
	{row: "G6", title: "the CRD prunes the conditions",
		quick: 1, breaksPlane: true, cases: one("no conditions", func(tr *trial) {
			prunes := func(stored *samplev1alpha1.Foo, err error) bool {
				return err == nil && len(stored.Status.Conditions) == 0
			}
			tr.crdMismatch("/schema/openAPIV3Schema/properties/status/properties/conditions", prunes)
		})},
}

// G1: a webhook with failurePolicy Fail does not answer while a user changes a Foo. The
// message of the Foo's condition begins with what could not be done.
func (tr *trial) webhookDown(foo, what string, act func()) {
	tr.timeout = backoffTimeout
	tr.startWithFoo("one", 1)
	tr.apply("fail-closed.yaml", manifest{})
	isCalled := func(_ *appsv1.Deployment, err error) bool { return apierrors.IsInternalError(err) }
	tr.awaitAdmission("the webhook is called", creates, newDeployment("probe"), isCalled)
	tr.whileRefused(foo, samplev1alpha1.ReasonProgressing, func() {
		act()
		tr.stableAndQuiet()
		tr.must(tr.checkMessage(tr.ctx, foo, "Deployment "+what+" yet: ", "failed calling webhook"))
		tr.serves("one", 1)
	}, tr.withdraw)
}

// retryAfter is the Retry-After, in seconds, that two Foos get. client-go alone would
// wait for it within the call, ten times: longer than the timeout of a trial.
const retryAfter = 10

// G2: a controller that waits for a Retry-After in a worker delays all other Foos. The two
// get no other answer until the others are ready, so the result depends on the order alone.
func (tr *trial) throttled(fault proxy.Fault) {
	// The timeout of a call must not end a wait within it.
	r := tr.start(tr.flagsOfOurs("-request-timeout=10m")...)
	end := r.proxy.Use(isAbout("slow-"), fault)
	slow, quick := []string{"slow-1", "slow-2"}, []string{"quick-0", "quick-1", "quick-2", "quick-3", "quick-4"}
	for _, foo := range slow {
		tr.createFoo(foo, foo, 1)
	}
	for _, foo := range slow {
		tr.awaitCalls(r, 1, isCreate, isAbout(foo), isAnswered)
	}
	for _, foo := range quick {
		tr.createFoo(foo, foo, 1)
	}
	tr.phase = fmt.Sprintf("while two Foos have a Retry-After of %d s", retryAfter)
	tr.awaitReady(quick...)
	tr.phase = ""
	for _, foo := range slow {
		tr.awaitCalls(r, 2, isCreate, isAbout(foo), isAnswered)
	}
	end()
	tr.stableAndQuiet()
	for _, foo := range slow {
		tr.mustHeedRetryAfter(r, foo)
	}
}

// mustHeedRetryAfter fails if a request for a Foo was repeated before its Retry-After was
// over.
func (tr *trial) mustHeedRetryAfter(r *replica, foo string) {
	throttledAt := map[string]time.Time{}
	for _, call := range r.made(isAbout(foo)) {
		what := call.Short()
		if before, ok := throttledAt[what]; ok && call.Began.Sub(before) < retryAfter*time.Second {
			tr.failf("with a Retry-After of %d s, it repeated a request after %v: %s",
				retryAfter, call.Began.Sub(before).Round(time.Millisecond), what)
		}
		delete(throttledAt, what)
		if call.Code == http.StatusTooManyRequests {
			throttledAt[what] = call.Began
		}
	}
}

// G3: the policy leaves two replicas.
func (tr *trial) cappedByPolicy(change func()) {
	tr.mutatedByPolicy(capping(), 2, change, func(replicas int32) string {
		return fmt.Sprintf("spec.replicas is 2, not %d", replicas)
	})
}

// mutatedByPolicy is G3, and D12: the condition says what differs, and the controller does
// not write again at a resync. differs returns what the condition must say of a Foo with so
// many replicas. After the policy is deleted, a change makes the controller write.
func (tr *trial) mutatedByPolicy(m mutation, capped int32, change func(), differs func(replicas int32) string) {
	const begins = `The API server stored Deployment "a" with different values than requested: `
	flags, resyncs := tr.resyncFlags()
	tr.start(flags...)
	tr.timeout = waitTimeout + resyncs
	stays := func(replicas int32) {
		tr.quietFor(resyncs)
		tr.must(tr.checkMessage(tr.ctx, "a", begins, differs(replicas)))
	}
	tr.mutate(m, creates+", "+updates)
	tr.expected.refused["a"] = samplev1alpha1.ReasonDeploymentFailed
	tr.createFoo("a", "a", 5)
	if capped > 0 {
		tr.awaitReplicas("a", capped)
	}
	stays(5)
	tr.scaleFoo("a", 3)
	stays(3)
	tr.phase = "after the policy is deleted"
	tr.withdraw()
	tr.awaitMutating(m, false)
	delete(tr.expected.refused, "a")
	change()
}

const (
	// statusChanges is how often the status of a Deployment changes while an update is
	// refused.
	statusChanges = 40
	// firstRetry is the shortest time after which either controller repeats a failed call.
	firstRetry = 5 * time.Millisecond
)

// backoffAttempts returns how many attempts a back-off makes in a time if each pause is twice the last.
// On a busy machine a row takes longer, and allows more.
func backoffAttempts(elapsed time.Duration) (attempts int) {
	for at, pause := time.Duration(0), firstRetry; at <= elapsed; at, pause = at+pause, 2*pause {
		attempts++
	}
	return attempts
}

// flap changes a condition in a Deployment's status again and again.
func (tr *trial) flap(r *replica, deployment string) {
	tr.changeEach(r, deployment, statusChanges, func(i int) {
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		patch := fmt.Sprintf(`{"status":{"conditions":[
			{"type":"faults.example.com/Flap","status":%q,"reason":"Flap","message":"%d"}]}}`, status, i)
		_, err := tr.deployments().Patch(tr.ctx, deployment, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: somebody}, "status")
		tr.must(err)
	})
}

// changeEach changes a Deployment a number of times, each time after the controller has
// received the last change.
func (tr *trial) changeEach(r *replica, deployment string, times int, change func(i int)) {
	var delivered atomic.Int32
	r.proxy.EditEvents(func(_ context.Context, event proxy.Event) [][]byte {
		if event.Resource == "deployments" && event.Name == deployment {
			delivered.Add(1)
		}
		return event.Times(1)
	})
	defer r.proxy.EditEvents(nil)
	for i := range times {
		before := delivered.Load()
		change(i)
		tr.await("the controller receives the change", func(context.Context) error {
			if delivered.Load() == before {
				return errors.New("it has not")
			}
			return nil
		})
	}
}

// G6: the CRD lacks a part that the program was made for. inForce reports whether
// that is in force, from the answer to a dry run of a status with a condition. A status that
// can't be stored is not sent again at each resync, only logged, and Deployments are
// reconciled.
func (tr *trial) crdMismatch(path string, inForce func(stored *samplev1alpha1.Foo, err error) bool) {
	tr.createFoo("a", "a", 1)
	tr.withoutRecording(func() {
		tr.removeFromCRD(path)
		tr.awaitMismatch(inForce, true)
	})
	flags, resyncs := tr.resyncFlags()
	tr.timeout = waitTimeout + resyncs
	r := tr.start(flags...)
	tr.expected.statusUnwritable = true
	tr.awaitReady("a")
	tr.scaleFoo("a", 2)
	tr.createFoo("b", "b", 1)
	tr.awaitReady("a", "b")
	tr.quietFor(resyncs)
	if !tr.subject.isUpstream && !strings.Contains(r.log.String(), "CustomResourceDefinition") {
		tr.failf("its log does not mention the CustomResourceDefinition")
	}
	tr.phase = "with the shipped CRD again"
	tr.expected.statusUnwritable = false
	tr.withoutRecording(func() {
		tr.must(tr.cluster.install(tr.ctx))
		tr.awaitMismatch(inForce, false)
	})
	r.crash() // the new process tries at once, the old one only after a time
	tr.scaleFoo("a", 3)
	tr.scaleFoo("b", 2)
}

// awaitMismatch waits until the changed CRD is in force, or no longer.
func (tr *trial) awaitMismatch(inForce func(*samplev1alpha1.Foo, error) bool, want bool) {
	tr.await(fmt.Sprintf("the changed CRD is in force: %v", want), func(ctx context.Context) error {
		foo, err := tr.foos().Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		probe := metav1.Condition{Type: "Probe", Status: metav1.ConditionTrue, Reason: "Probe"}
		meta.SetStatusCondition(&foo.Status.Conditions, probe)
		stored, err := tr.foos().UpdateStatus(ctx, foo, metav1.UpdateOptions{DryRun: dryRun})
		if inForce(stored, err) != want || !want && err != nil {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
}
