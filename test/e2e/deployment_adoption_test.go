// SPDX-License-Identifier: Apache-2.0

// The adoption of Deployments: consent is used once, and everything else stays as it is.

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestConsentToAdoptionIsUsedOnce(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"the write that adopts removes it, and everything else stays", checkConsentSpent},
		{"a Deployment whose owner reference is then removed is left alone", checkAdoptedThenReleased},
		{"a Deployment that is then orphaned is left alone", checkAdoptedOrphaned},
		{"a Deployment that the Foo owned already has one reference to it", checkAdoptedOwned},
		{"a Deployment with a very long selector is adopted, too", checkAdoptedLongSelector},
	})
}

// handOver creates a Deployment and a Foo of the same name, and consents to the adoption
// by the command in the Foo's message. It returns the Deployment as it was before.
func (ns *namespace) handOver(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	ns.createDeployment(t, name, 1)
	mergePatch(t, ns.deployments(), name, `{"metadata":{"annotations":{"team":"blue"}}}`)
	before := ns.settledDeployment(t, name)
	foo := ns.createFoo(t, newFoo(name, withReplicas(1)))
	ns.kubectl(t, commandIn(t, readyOf(ns.awaitConflict(t, name)).Message)...)
	ns.awaitReady(t, name)
	if err := isControlled(ns.settledDeployment(t, name), foo); err != nil {
		t.Fatal(err)
	}
	return before
}

func checkConsentSpent(t *testing.T, ns *namespace) {
	before := ns.handOver(t, "spent")
	after := ns.getDeployment(t, "spent")
	// One of the annotations belongs to the Deployment controller.
	for _, d := range []*appsv1.Deployment{before, after} {
		maps.DeleteFunc(d.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	}
	if !maps.Equal(after.Annotations, before.Annotations) || !maps.Equal(after.Labels, before.Labels) {
		t.Errorf("Annotations and labels are %v %v, were %v %v", after.Annotations, after.Labels, before.Annotations, before.Labels)
	}
	ns.eachState(t, before, after, func(d *appsv1.Deployment) {
		if _, asks := d.Annotations[samplev1alpha1.AnnotationAdoptBy]; asks && metav1.GetControllerOf(d) != nil {
			t.Errorf("At version %s it has both a controller and the annotation", d.ResourceVersion)
		}
	})
}

// eachState calls inspect for each state of a Deployment after one state, up to another.
func (ns *namespace) eachState(t *testing.T, from, until *appsv1.Deployment, inspect func(*appsv1.Deployment)) {
	t.Helper()
	since := named(from.Name)
	since.ResourceVersion = from.ResourceVersion
	watcher, err := ns.deployments().Watch(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for {
		event := nextEvent(t, watcher)
		state, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			t.Fatalf("The watch delivered %v", event)
		}
		inspect(state)
		if state.ResourceVersion == until.ResourceVersion {
			return
		}
	}
}

func checkAdoptedThenReleased(t *testing.T, ns *namespace) {
	ns.handOver(t, "lent")
	taken := mergePatch(t, ns.deployments(), "lent", `{"metadata":{"ownerReferences":null}}`)
	ns.awaitConflict(t, "lent")
	mergePatch(t, ns.foos(), "lent", `{"spec":{"replicas":3}}`)
	ns.awaitConflict(t, "lent")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, taken)
}

func checkAdoptedOrphaned(t *testing.T, ns *namespace) {
	ns.handOver(t, "inherited")
	ns.deleteFoo(t, "inherited", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.foos(), "inherited")
	kept := ns.settledDeployment(t, "inherited")
	ns.createFoo(t, newFoo("inherited", withReplicas(3)))
	ns.awaitConflict(t, "inherited")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, kept)
}

func checkAdoptedOwned(t *testing.T, ns *namespace) {
	other, err := ns.in.kube.CoreV1().ConfigMaps(ns.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Create the Foo with another name first, so that its UID is known before the
	// Deployment exists.
	foo := ns.createFoo(t, newFoo("owner", withChild("before")))
	ns.awaitReady(t, "owner")
	ns.createDeployment(t, "owned", 1)
	others := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":%q}`, other.UID)
	mergePatch(t, ns.deployments(), "owned", fmt.Sprintf(`{"metadata":{"ownerReferences":[%s,%s]}}`, reference(foo), others))
	mergePatch(t, ns.foos(), "owner", `{"spec":{"deploymentName":"owned"}}`)
	ns.kubectl(t, commandIn(t, readyOf(ns.awaitConflict(t, "owner")).Message)...)
	ns.awaitReady(t, "owner")
	owned := ns.getDeployment(t, "owned")
	uids := map[types.UID]int{}
	for _, ref := range owned.OwnerReferences {
		uids[ref.UID]++
	}
	if err := isControlled(owned, foo); err != nil || !maps.Equal(uids, map[types.UID]int{foo.UID: 1, other.UID: 1}) {
		t.Errorf("Its owners are %v, want the Foo as its controller, the ConfigMap, and no others", owned.OwnerReferences)
	}
}

// checkAdoptedLongSelector checks a selector that is longer than the 4096 characters that
// the status has room for.
func checkAdoptedLongSelector(t *testing.T, ns *namespace) {
	var shards []string
	for i := range 100 {
		shards = append(shards, fmt.Sprintf("%s-%d", strings.Repeat("x", 50), i))
	}
	template := templateOf("wide")
	template.Labels["shard"] = shards[0]
	selector := selectorOf("wide")
	selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "shard", Operator: metav1.LabelSelectorOpIn, Values: shards}}
	_, err := ns.deployments().Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "wide", Annotations: map[string]string{samplev1alpha1.AnnotationAdoptBy: "wide"}},
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.createFoo(t, newFoo("wide", withReplicas(2)))
	if got := ns.awaitReady(t, "wide").Status.Selector; got != "" {
		t.Errorf("status.selector is %q, want none: a truncated selector would select other Pods", got)
	}
}

// TestAnOwnerWithALongNameIsAConflict checks that the message stays short: the API server
// limits neither the kind nor the name of an owner.
func TestAnOwnerWithALongNameIsAConflict(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	long := strings.Repeat("x", 40000)
	for name, ref := range map[string]string{
		"long-kind": fmt.Sprintf(`{"apiVersion":"other.example.com/v1","kind":%q,"name":"x","uid":"1","controller":true}`, long),
		"long-name": fmt.Sprintf(`{"apiVersion":"other.example.com/v1","kind":"X","name":%q,"uid":"1","controller":true}`, long),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns.createDeployment(t, name, 1)
			mergePatch(t, ns.deployments(), name, `{"metadata":{"ownerReferences":[`+ref+`]}}`)
			ns.createFoo(t, newFoo(name))
			if got := len(readyOf(ns.awaitConflict(t, name)).Message); got > 1024 {
				t.Errorf("The message has %d characters, want at most 1024", got)
			}
			awaitEvent(t, ns, name, corev1.EventTypeWarning, samplev1alpha1.ReasonDeploymentConflict)
		})
	}
}

// reference returns a reference to a Foo that is not the controller, as JSON.
func reference(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Foo","name":%q,"uid":%q}`, samplev1alpha1.SchemeGroupVersion, foo.Name, foo.UID)
}
