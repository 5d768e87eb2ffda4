// SPDX-License-Identifier: Apache-2.0

// The contract: the status, its condition and its events, and the subresource scale.

package e2e

import (
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAFooReportsItsState(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"the status has the numbers of Pods and the observed generation", checkStatusNumbers},
		{"a change that is no transition leaves lastTransitionTime alone", checkTransitionTime},
		{"each transition has one event", checkEvents},
		{"kubectl wait sees the condition Ready", checkKubectlWait},
	})
}

func checkStatusNumbers(t *testing.T, ns *namespace) {
	first := ns.createReadyFoo(t, newFoo("numbers", withReplicas(2)))
	if got := first.Status; got.AvailableReplicas != 2 || got.Replicas != 2 || got.Selector != "app=nginx,controller=numbers" {
		t.Errorf("The status is %+v, want 2 available of 2, and the Pods' selector", got)
	}
	mergePatch(t, ns.foos(), "numbers", `{"spec":{"replicas":3}}`)
	second := ns.awaitReady(t, "numbers")
	if got := second.Status; got.AvailableReplicas != 3 || got.ObservedGeneration <= first.Status.ObservedGeneration {
		t.Errorf("The status is %+v, want 3 available, and a generation above %d", got, first.Status.ObservedGeneration)
	}
}

func checkTransitionTime(t *testing.T, ns *namespace) {
	before := ns.createReadyFoo(t, newFoo("transition"))
	// Times are stored in whole seconds, so two writes within a second could have the
	// same. Set the transition to a time long ago.
	const longAgo = "2026-01-01T00:00:00Z"
	aged := `[{"op":"replace","path":"/status/conditions/0/lastTransitionTime","value":"` + longAgo + `"}]`
	if _, err := ns.foos().Patch(t.Context(), "transition", types.JSONPatchType, []byte(aged), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	// The child runs one Pod already, so only the generation changes.
	mergePatch(t, ns.foos(), "transition", `{"spec":{"replicas":1}}`)
	after := ns.awaitReady(t, "transition")
	if after.Status.ObservedGeneration == before.Status.ObservedGeneration {
		t.Error("The observed generation did not change, so this test shows nothing")
	}
	if got := readyOf(after).LastTransitionTime.UTC().Format(time.RFC3339); got != longAgo {
		t.Errorf("lastTransitionTime changed from %s to %s without a transition", longAgo, got)
	}
}

func checkEvents(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("events"))
	awaitEvent(t, ns, "events", corev1.EventTypeNormal, samplev1alpha1.ReasonAvailable)
	ns.awaitSyncs(t)
	events, err := ns.events().List(t.Context(), eventsOf("events"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if event := &events.Items[i]; event.Reason == samplev1alpha1.ReasonAvailable && event.Count > 1 {
			t.Errorf("Event %s was recorded %d times, want once", event.Reason, event.Count)
		}
	}
}

// eventsOf selects the events about a Foo.
func eventsOf(foo string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.kind": "Foo", "involvedObject.name": foo}.String()}
}

// awaitEvent waits for an event about a Foo.
func awaitEvent(t *testing.T, ns *namespace, foo, kind, reason string) {
	t.Helper()
	awaitList(t, fmt.Sprintf("event %s about Foo %s", reason, foo), ns.events(), eventsOf(foo), func(events *corev1.EventList) error {
		for i := range events.Items {
			if event := &events.Items[i]; event.Type == kind && event.Reason == reason {
				return nil
			}
		}
		return errNone
	})
}

func checkKubectlWait(t *testing.T, ns *namespace) {
	ns.createFoo(t, newFoo("kubectl-wait", withReplicas(2)))
	ns.kubectl(t, "wait", "foo/kubectl-wait", "--for=condition=Ready", "--timeout="+cluster.patience().String())
	if err := isReady(ns.getFoo(t, "kubectl-wait")); err != nil {
		t.Error(err)
	}
}

var foosResource = schema.GroupResource{Group: samplev1alpha1.GroupName, Resource: "foos"}

func TestAFooScalesUpAndDown(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"by a patch", checkScaledByPatch},
		{"by an update", checkScaledByUpdate},
		{"through the scale subresource", checkScaledBySubresource},
		{"by kubectl scale", checkScaledByKubectl},
	})
}

func checkScaledByPatch(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("patched", withReplicas(1)))
	mergePatch(t, ns.foos(), "patched", `{"spec":{"replicas":3}}`)
	ns.awaitReplicas(t, "patched", 3)
	mergePatch(t, ns.foos(), "patched", `{"spec":{"replicas":2}}`)
	ns.awaitReplicas(t, "patched", 2)
}

func checkScaledByUpdate(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("updated", withReplicas(1)))
	// The controller writes the status at the same time, so a conflict is possible.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		foo := ns.getFoo(t, "updated")
		foo.Spec.Replicas = new(int32(2))
		_, err := ns.foos().Update(t.Context(), foo, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.awaitReplicas(t, "updated", 2)
}

func checkScaledBySubresource(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("subresource", withReplicas(1)))
	scales := ns.scales(t)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := scales.Get(t.Context(), foosResource, "subresource", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Replicas = 2
		_, err = scales.Update(t.Context(), foosResource, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.awaitReplicas(t, "subresource", 2)

	got, err := scales.Get(t.Context(), foosResource, "subresource", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := autoscalingv1.ScaleStatus{Replicas: 2, Selector: "app=nginx,controller=subresource"}
	if got.Spec.Replicas != 2 || got.Status != want {
		t.Errorf("The scale is %+v with spec.replicas %d, want %+v with 2, because autoscalers use it", got.Status, got.Spec.Replicas, want)
	}
}

// scales returns the client that kubectl scale and the autoscaler use.
func (ns *namespace) scales(t *testing.T) scale.ScaleInterface {
	t.Helper()
	discovery := cluster.kube.Discovery()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	getter, err := scale.NewForConfig(cluster.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		t.Fatal(err)
	}
	return getter.Scales(ns.name)
}

func checkScaledByKubectl(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("kubectl", withReplicas(1)))
	ns.kubectl(t, "scale", "foo/kubectl", "--replicas=3")
	ns.kubectl(t, "wait", "foo/kubectl", "--for=jsonpath={.status.availableReplicas}=3", "--timeout="+cluster.patience().String())
	ns.awaitReplicas(t, "kubectl", 3)
}
