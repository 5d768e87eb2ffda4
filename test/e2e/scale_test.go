// SPDX-License-Identifier: Apache-2.0

// Scaling a Foo in each way that users and autoscalers do.

package e2e

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
