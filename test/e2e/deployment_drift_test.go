// SPDX-License-Identifier: Apache-2.0

// The contract: drift of owned fields is undone, and all other fields stay.

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyOwnedFieldsAreReconciled(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"a changed number of replicas is undone", checkReplicasRestored},
		{"replicas that the Foo leaves out are left to an autoscaler", checkReplicasOfOthers},
		{"a changed image is undone, and fields of others stay", checkOthersKept},
		{"metadata that others add to a Foo stays, however large", checkFooMetadataKept},
	})
}

func checkReplicasRestored(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("replicas", withReplicas(2)))
	drifted := mergePatch(t, ns.deployments(), "replicas", `{"spec":{"replicas":4}}`)
	awaitOne(t, "the drift is undone", ns.deployments(), "replicas", func(d *appsv1.Deployment) error {
		return errors.Join(isAfter(d, drifted), asksFor(d, 2))
	})
	ns.awaitReplicas(t, "replicas", 2)
}

// isAfter returns an error unless a Deployment's spec has changed since an earlier state.
func isAfter(deployment, earlier *appsv1.Deployment) error {
	if deployment.Generation <= earlier.Generation {
		return fmt.Errorf("its generation is still %d", deployment.Generation)
	}
	return nil
}

func checkReplicasOfOthers(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("autoscaled"))
	scaled := mergePatch(t, ns.deployments(), "autoscaled", `{"spec":{"replicas":3}}`)
	ns.awaitReplicas(t, "autoscaled", 3)
	ns.awaitSyncs(t)
	if got := ns.getDeployment(t, "autoscaled"); got.Generation != scaled.Generation {
		t.Errorf("The spec has changed: %s", show(got))
	}
}

func checkOthersKept(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("mixed", withReplicas(1)))
	// Change in one write fields of others, such as the time of a "kubectl rollout
	// restart", and an owned field.
	drifted := patchAs(t, ns.deployments(), "mixed", types.StrategicMergePatchType, `{
		"metadata": {"annotations": {"team": "blue"}, "labels": {"cost": "low"}, "finalizers": ["example.com/test"]},
		"spec": {
			"minReadySeconds": 0, "revisionHistoryLimit": 3,
			"template": {
				"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}},
				"spec": {"containers": [
					{"name": "nginx", "image": "nginx:1.0-wrong", "env": [{"name": "TZ", "value": "UTC"}]},
					{"name": "sidecar", "image": "`+pauseImage+`"}
				]}
			}
		}
	}`)
	if containerNamed(drifted, "nginx").Image != "nginx:1.0-wrong" {
		t.Fatal("The patch did not change the image, so this test shows nothing")
	}
	repaired := awaitOne(t, "the image is restored", ns.deployments(), "mixed", func(d *appsv1.Deployment) error {
		if got := containerNamed(d, "nginx").Image; got != "nginx:latest" {
			return errors.New("the image is " + got)
		}
		return isAfter(d, drifted)
	})

	template := &repaired.Spec.Template
	for what, kept := range map[string]bool{
		"the annotation":            repaired.Annotations["team"] == "blue",
		"the label":                 repaired.Labels["cost"] == "low",
		"the finalizer":             len(repaired.Finalizers) == 1,
		"the history limit":         *repaired.Spec.RevisionHistoryLimit == 3,
		"the time of the restart":   template.Annotations["kubectl.kubernetes.io/restartedAt"] != "",
		"the sidecar":               containerNamed(repaired, "sidecar").Image == pauseImage,
		"the container's variables": len(containerNamed(repaired, "nginx").Env) == 1,
	} {
		if !kept {
			t.Errorf("Restoring the image removed %s", what)
		}
	}
	ns.awaitReady(t, "mixed")
	mergePatch(t, ns.deployments(), "mixed", `{"metadata":{"finalizers":null}}`)
}

func checkFooMetadataKept(t *testing.T, ns *namespace) {
	const finalizer = "example.com/test"
	large := strings.Repeat("a", 255<<10)
	foo := newFoo("large", withReplicas(1))
	foo.Labels = map[string]string{"cost": "low"}
	foo.Annotations = map[string]string{"team": large}
	foo.Finalizers = []string{finalizer}
	ns.createReadyFoo(t, foo)
	mergePatch(t, ns.foos(), "large", `{"spec":{"replicas":2}}`)
	scaled := ns.awaitReady(t, "large")
	if scaled.Labels["cost"] != "low" || scaled.Annotations["team"] != large || len(scaled.Finalizers) != 1 {
		t.Errorf("Writing the status changed labels, annotations or finalizers of the Foo: %v, %d bytes, %v",
			scaled.Labels, len(scaled.Annotations["team"]), scaled.Finalizers)
	}
	mergePatch(t, ns.foos(), "large", `{"metadata":{"finalizers":null}}`)
}
