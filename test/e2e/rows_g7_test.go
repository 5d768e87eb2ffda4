// SPDX-License-Identifier: Apache-2.0

// Rows G7 to G15: long names, adoption, denials by webhooks, fights, and platforms that add fields.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

var rowsG7 = []*scenario{
	{row: "G7", title: "an adopted Deployment has a very long selector",
		quick: 1, cases: one("of 6,000 characters", func(tr *trial) {
			// The selector of an adopted Deployment is longer than a status may hold, and a part
			// of it would select other Pods.
			values := []string{"nginx"}
			for i := range 100 {
				values = append(values, fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 56)))
			}
			tr.start()
			tr.adopt(func(d *appsv1.Deployment) {
				d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values},
				}}
			})
			if foo := tr.foo("a"); foo.Status.Selector != "" {
				tr.failf("status.selector has %d characters", len(foo.Status.Selector))
			}
			tr.scaleFoo("a", 3)
		}), oursOnly: noAdoption},
	{row: "G7", title: "the owner of a Deployment has a very long kind and name",
		quick: 1, exempt: true, cases: one("of 40,000 characters", func(tr *trial) {
			// The kind and name of the owner are longer than any message. The API server validates
			// neither.
			const long = 40_000
			tr.start()
			tr.protect(tr.createDeployment("a",
				ownedBy(strings.Repeat("n", long), foreignUID, "faults.example.com/v1", strings.Repeat("K", long))))
			tr.createFoo("a", "a", 3)
			tr.stableAndQuiet()
			tr.mustSay("a", `Deployment "a"`)
		})},
	{row: "G8", title: "a Deployment that was handed over is taken away: it is not adopted again",
		quick: 2, oursOnly: noAdoption, cases: []trialCase{
			{name: "the owner is taken away", run: func(tr *trial) { tr.adoptedOnce(tr.takeAway) }},
			{name: "an orphan, and a Foo of the same name", run: func(tr *trial) {
				tr.adoptedOnce(func() {
					tr.orphan()
					tr.createFoo("a", "a", 1)
				})
			}},
		}},
	{row: "G9", title: "outages and rejections alternate: each is reported once", quick: 1, cases: []trialCase{
		{name: "a refusal first", run: func(tr *trial) { tr.inTurn(http.StatusForbidden, http.StatusInternalServerError) }},
		{name: "an outage first", run: func(tr *trial) { tr.inTurn(http.StatusInternalServerError, http.StatusForbidden) }},
	}},
	{row: "G12", title: "a webhook denies a write with code 409 or 404, or reason Conflict: a report within seconds, without constant retries",
		quick: 2, cases: denials()},
	{row: "G13", title: "another writer reverts each repair: few repairs, one Warning, and the Foo names the writer",
		cases: one("the replicas", func(tr *trial) {
			r := tr.startWithFoo("a", 1)
			began := time.Now()
			tr.oppose("a", 3)
			tr.mustNotFight(r, began)
			tr.mustBeStalled("a", somebody)
			tr.timeout = 2 * waitTimeout // the next repair has to last a minute
		}),
		why: "as G4"},
	{row: "G13", title: "two controllers with different images share a Foo",
		exempt: true, cases: one("for a while", func(tr *trial) {
			// Two controllers with different images have the same Foo. Each takes the other for
			// someone who undoes its repairs.
			r := tr.startWithFoo("a", 1)
			began := time.Now()
			other := tr.start("-image=nginx:other")
			tr.pause(fightTime)
			tr.mustNotFight(r, began)
			tr.mustNotFight(other, began)
			tr.mustBeStalled("a", "sample-controller")
			if writes := len(r.made(isWork)) + len(other.made(isWork)); writes > 6*maxRepairs {
				tr.failf("two controllers made %d writes for one Foo", writes)
			}
			other.close()
			tr.timeout = 2 * waitTimeout // the next repair has to last a minute
		}), oursOnly: noImage},
	{row: "G14", title: "an admission policy changes a Deployment only at its creation: one update repairs it",
		quick: 1, cases: one("the replicas", func(tr *trial) {
			// Such a policy says nothing about updates, so one of them repairs the Deployment.
			r := tr.start()
			tr.mutate(capping(), creates)
			tr.createFoo("a", "a", 5)
			tr.stableAndQuiet()
			if updates := r.made(isUpdate, succeeded); len(updates) != 1 {
				tr.failf("it repaired the Deployment with %d updates", len(updates))
			}
		})},
	{row: "G15", title: "a platform's admission adds to each written Deployment: Foos are created and scaled, and the additions stay",
		quick: 2, cases: additions()},
}

// additions makes a case of each field that a platform sets, with its value in CEL.
func additions() (cases []trialCase) {
	for path, value := range map[string]string{
		"/metadata/labels":                           `{"platform.example.com/zone": "a"}`,
		"/spec/template/metadata/annotations":        `{"platform.example.com/version": "3.1"}`,
		"/spec/template/spec/containers/0/resources": `{"requests": {"cpu": "10m"}}`,
		"/spec/template/spec/tolerations":            `[{"key": "platform", "operator": "Exists"}]`,
		"/spec/template/spec/imagePullSecrets":       `[{"name": "mirror"}]`,
	} {
		cases = append(cases, trialCase{name: filepath.Base(path), run: func(tr *trial) { tr.addedByPlatform(path, value) }})
	}
	slices.SortFunc(cases, func(a, b trialCase) int { return strings.Compare(a.name, b.name) })
	return cases
}

// G15: admission, which writes in the controller's name, sets a field of Deployments, one of which existed before.
func (tr *trial) addedByPlatform(path, value string) {
	wanted := func(d *appsv1.Deployment) bool {
		text, err := json.Marshal(d)
		tr.must(err)
		return strings.Contains(string(text), strings.Trim(strings.ReplaceAll(value, " ", ""), "[]{}"))
	}
	tr.startWithFoo("a", 1)
	tr.mutate(mutation{path, value, wanted}, creates+", "+updates)
	tr.scaleFoo("a", 3)
	tr.createFoo("b", "b", 1)
	tr.stableAndQuiet()
	for _, name := range []string{"a", "b"} {
		d, err := tr.deployments().Get(tr.ctx, name, metav1.GetOptions{})
		if tr.must(err); !wanted(d) {
			tr.failf("the Deployment %s lacks what the platform adds", name)
		}
	}
}

// adopt creates a Deployment that asks for adoption, and the Foo that adopts it.
func (tr *trial) adopt(options ...func(*appsv1.Deployment)) {
	asking := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "a"}
	}
	tr.createDeployment("a", append(options, asking)...)
	tr.settledFoo("a", "a", 2)
}

// G8: the update that adopts a Deployment removes the annotation that asked for it.
func (tr *trial) adoptedOnce(change func()) {
	r := tr.start()
	tr.adopt()
	change()
	tr.stableAndQuiet()
	for _, call := range r.made(isUpdate, succeeded) {
		var d appsv1.Deployment
		tr.must(json.Unmarshal(call.Answer, &d))
		if metav1.GetControllerOf(&d) != nil && d.Annotations[samplev1alpha1.AnnotationAdoptBy] != "" {
			tr.failf("it adopted the Deployment but left the annotation that requested it")
		}
	}
}

// G9: the same write fails by an outage and a refusal in turn.
func (tr *trial) inTurn(codes ...int) {
	tr.timeout = backoffTimeout
	r := tr.start()
	var attempts atomic.Int32
	end := r.proxy.Use(isCreate, func(x *proxy.Exchange) {
		proxy.Refuse(codes[int(attempts.Add(1)-1)%len(codes)])(x)
	})
	tr.createFoo("a", "a", 1)
	tr.awaitCalls(r, 5, isCreate)
	// It reports that the write failed, and then the final reason.
	events, reasons := 0, []string{""}
	for _, call := range r.made(isWrite, succeeded) {
		if call.Resource == "events" {
			events++
		}
		if call.Subresource != "status" {
			continue
		}
		var foo samplev1alpha1.Foo
		tr.must(json.Unmarshal(call.Answer, &foo))
		now := ""
		if ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady); ready != nil {
			now = ready.Reason
		}
		if now != reasons[len(reasons)-1] {
			reasons = append(reasons, now)
		}
	}
	if events > 2 || len(reasons) > 3 {
		tr.failf("alternating outages and rejections caused %d events, and the reasons %v", events, reasons[1:])
	}
	end()
	tr.scaleFoo("a", 2) // the new spec ends the back-off
}

// denials are G12.
func denials() []trialCase {
	const failed, outage = samplev1alpha1.ReasonDeploymentFailed, samplev1alpha1.ReasonProgressing
	createB, scaleOne := func(tr *trial) { tr.createFoo("b", "b", 1) }, func(tr *trial) { tr.scaleDeployment("one", 5) }
	renameA := func(tr *trial) { tr.renameDeployment("a", "two") }
	byWebhook, notFound := proxy.Denied(http.StatusConflict), proxy.Denied(http.StatusNotFound)
	lostRace := proxy.Refuse(http.StatusConflict)
	return []trialCase{
		{name: "a create, 409", run: denied(byWebhook, isCreate, createB, "b", failed, proxy.DenialText)},
		{name: "an update, 404", run: denied(notFound, isUpdate, scaleOne, "a", failed, proxy.DenialText)},
		{name: "a create, reason Conflict", run: denied(lostRace, isCreate, createB, "b", outage, "not be created yet")},
		{name: "an update, reason Conflict", run: denied(lostRace, isUpdate, scaleOne, "a", outage, "not be updated yet")},
		{name: "a delete, 409", needs: "rename", run: denied(byWebhook, isDelete, renameA, "a", failed, proxy.DenialText)},
	}
}

// G12: an admission webhook denies a write until it is asked to stop. It chooses the code of
// its answer, and may choose one that the API server itself answers to a client that lost a
// race. The Foo must report the reason, in words that contain said.
func denied(fault proxy.Fault, is selector, act func(*trial), foo, reason, said string) func(*trial) {
	return func(tr *trial) {
		r := tr.startWithFoo("one", 1)
		end := r.proxy.Use(is, fault)
		tr.whileRefused(foo, reason, func() {
			act(tr)
			tr.awaitReported(foo, said)
		}, end)
	}
}

const (
	// fightTime is how long the opponent goes on.
	fightTime = 20 * time.Second
	// maxRepairs bounds the repairs meanwhile: some at once, the rest with pauses that double.
	maxRepairs = 10
)

// oppose sets the replicas of a Deployment again and again, each time soon after they differ.
func (tr *trial) oppose(deployment string, replicas int32) {
	for over := time.Now().Add(fightTime); time.Now().Before(over); tr.pause(10 * time.Millisecond) {
		if *tr.deployment(deployment).Spec.Replicas != replicas {
			tr.scaleDeployment(deployment, replicas)
		}
	}
}

// mustNotFight fails if a controller repaired a Deployment too often, or reported that more
// than once.
func (tr *trial) mustNotFight(r *replica, began time.Time) {
	repairs, warnings := len(r.made(since(began), isUpdate, succeeded)), len(r.made(since(began), isWarning))
	if repairs > maxRepairs || warnings > 1 {
		tr.failf("its repairs were reverted for %v, and it made %d repairs and %d Warnings",
			fightTime, repairs, warnings)
	}
}

// mustBeStalled fails unless a Foo reports that it needs someone else, and in whose name.
func (tr *trial) mustBeStalled(foo, manager string) {
	if tr.subject.isUpstream {
		return
	}
	found := tr.foo(foo)
	if !meta.IsStatusConditionTrue(found.Status.Conditions, "Stalled") {
		tr.failf("Foo %s is not stalled: %+v", foo, found.Status.Conditions)
	}
	tr.must(tr.checkReady(found, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed))
	tr.mustSay(foo, fmt.Sprintf("is changed back after each repair, most recently by %q", manager))
}

var rowsOthers = []*scenario{
	{row: "G16", title: "all Pods of a finished rollout become unready: the Foo says that they are lost, and a Warning does",
		quick: 1, oursOnly: noConditions, cases: one("by their status", func(tr *trial) {
			r := tr.startWithFoo("a", 2)
			tr.awaitSettled("a")
			tr.setReady("a", false)
			tr.expected.refused["a"] = samplev1alpha1.ReasonUnavailable
			tr.awaitReported("a", `Deployment "a" has lost Pods: 0 of 2 available`)
			tr.awaitCalls(r, 1, isWarning)
			delete(tr.expected.refused, "a")
			tr.setReady("a", true)
		})},
	{row: "G17", title: "a Pod's readiness flaps: few statuses and Events, and the Foo is ready in the end",
		quick: 1, why: "it writes a status and an Event for each change", cases: one("20 times", func(tr *trial) {
			r := tr.startWithFoo("a", 2)
			tr.awaitSettled("a")
			began, set, longest := time.Now(), time.Now(), time.Duration(0)
			for i := range 20 {
				tr.setReady("a", i%2 == 1)
				tr.pause(400 * time.Millisecond)
				longest, set = max(longest, time.Since(set)), time.Now()
			}
			// Two statuses and two Events for each loss that is told. After the third, readiness has to last a
			// second to be told, and then twice as long each time: so on a busy machine, where it lasts longer
			// between two changes, there are more.
			most := 16
			for told := time.Second; told <= longest; told *= 2 {
				most += 4
			}
			if writes := len(r.made(since(began), isWrite)); writes > most {
				tr.failf("a Pod that flapped 20 times caused %d writes, and at most %d are bounded", writes, most)
			}
			tr.timeout = 2 * waitTimeout // the Pods have to last first
		})},
	{row: "G18", title: "another writer undoes repairs, but seldom: each is repaired at once, and an Event names the writer",
		quick: 1, why: "it repairs, and tells nobody", cases: one("the replicas", func(tr *trial) {
			// A shorter period stands for an opponent with a longer one.
			r := tr.start(tr.flagsOfOurs("-fight-period=1s")...)
			tr.settledFoo("a", "a", 1)
			for range 4 {
				tr.scaleDeployment("a", 3)
				tr.awaitReplicas("a", 1)
				tr.stableAndQuiet()
				tr.pause(2 * time.Second)
			}
			tr.await("an Event names the opponent", func(context.Context) error {
				for _, call := range r.made(isWarning, succeeded) {
					if strings.Contains(string(call.Answer), fmt.Sprintf("most recently by %q", somebody)) ||
						strings.Contains(string(call.Answer), fmt.Sprintf(`most recently by \"%s\"`, somebody)) {
						return nil
					}
				}
				return errors.New("none does")
			})
		})},
	{row: "G19", title: "the deletion of a Deployment is rejected: others that are no longer wanted are deleted, and the Foo reports it",
		quick: 1, oursOnly: noCleanup, cases: one("the first of three", func(tr *trial) {
			r := tr.startWithFoo("one", 1)
			refused := both(isDelete, func(call *proxy.Call) bool { return call.Name == "old-1" })
			end := r.proxy.Use(refused, proxy.Denied(http.StatusForbidden))
			foo := tr.foo("a")
			for _, name := range []string{"old-1", "old-2", "old-3"} {
				tr.createDeployment(name, ownedBy("a", foo.UID, samplev1alpha1.SchemeGroupVersion.String(), "Foo"))
			}
			tr.whileRefused("a", samplev1alpha1.ReasonDeploymentFailed, func() {
				tr.awaitGone("old-2")
				tr.awaitGone("old-3")
				tr.awaitReported("a", `deleting the earlier Deployment "old-1"`)
			}, end)
		})},
}

// setReady makes the Pods of a Foo ready or not, as a kubelet does when a probe fails.
func (tr *trial) setReady(foo string, ready bool) {
	pods := tr.cluster.kube.CoreV1().Pods(tr.ns)
	found, err := pods.List(tr.ctx, metav1.ListOptions{LabelSelector: "controller=" + foo})
	tr.must(err)
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, status, status)
	for i := range found.Items {
		_, err := pods.Patch(tr.ctx, found.Items[i].Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		tr.must(err)
	}
}
