// SPDX-License-Identifier: Apache-2.0

// Tests of updates as patches.

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/sample-controller/test/footest"
)

// The API server stores these lists, whose elements have no key, or share one.
func TestAPatchOfADeploymentWhoseListsHaveNoKeys(t *testing.T) {
	for name, change := range map[string]func(deployment *appsv1.Deployment){
		"credentials without a name": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}}
		},
		"two ports of a number": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{
				{ContainerPort: 53, Protocol: corev1.ProtocolTCP}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			row, foo, live := Deployment("nginx:latest"), footest.Foo("a"), footest.Deployment("a", footest.WithImage("nginx:1"), footest.Changed(change))
			desired := row.DesiredUpdate(live, foo, nil)
			patchType, patch, err := row.Patch(live, desired)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := footest.Patched(live, patchType, patch)
			if err != nil {
				t.Fatal(err)
			}
			footest.ExpectEqual(t, "the patched Deployment", desired, patched.(*appsv1.Deployment))
		})
	}
}
