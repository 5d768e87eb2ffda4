// SPDX-License-Identifier: Apache-2.0

// Rows G16 to G19: Pods that are lost or flap, an opponent that takes its time, and a deletion
// that stays refused.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

var rowsOthers = []*scenario{
	{row: "G16", title: "all Pods of a finished rollout become unready: the Foo says that they are lost, and a Warning does",
		quick: 1, oursOnly: noConditions, cases: one("by their status", func(tr *trial) {
			r := tr.startWithFoo("a", 2)
			tr.awaitDeployment("is rolled out", "a", isRolledOut)
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
			tr.awaitDeployment("is rolled out", "a", isRolledOut)
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
				tr.settled()
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

// isRolledOut returns nil if the Deployment's controller has reported that a rollout is complete.
func isRolledOut(d *appsv1.Deployment) error {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "NewReplicaSetAvailable" {
			return nil
		}
	}
	return errors.New("it is not")
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
