/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The Deployment: its row, and what somebody with the controller's token may try with it.

package policy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // the defaults of Deployments

	"example.com/sample-controller/internal/plan"
)

// shippedImage is the image of the shipped service account.
const shippedImage = "nginx:latest"

var deployments = declare(row[*appsv1.Deployment]{
	Child:     plan.Deployment(shippedImage),
	plausible: plausibleDeployment,
	others:    shareDeployment,
	creates: slices.Concat(podWrites(onlyPlainPods), containerWrites, []attempt[*appsv1.Deployment]{
		{"as the controller does", func(*appsv1.Deployment) {}, ""},
		{"10 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(10)) }, ""},
		{"11 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"no Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, onlyTenPods},
		{"no owner", setOwners(), onlyForAFoo},
		{"a Foo that is not the controller", changeOwner(func(r *metav1.OwnerReference) { r.Controller = new(false) }), onlyForAFoo},
		{"an owner of another kind", changeOwner(func(r *metav1.OwnerReference) { r.APIVersion, r.Kind = "v1", "ConfigMap" }), onlyForAFoo},
		{"a Foo of another group", changeOwner(func(r *metav1.OwnerReference) { r.APIVersion = "other.example.com/v1alpha1" }), onlyForAFoo},
		{"one more owner", func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "uid-other"})
		}, onlyForAFoo},
		{"a label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "red"} }, onlyPlain},
		{"an annotation", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"inject": "yes"} }, onlyPlain},
		{"a finalizer", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/hold"} }, onlyPlain},
		{"a strategy", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, onlyPlain},
		{"a pause", func(d *appsv1.Deployment) { d.Spec.Paused = true }, onlyPlain},
		{"Pods that others' Service selects", labelPods("service", "bank"), onlyItsLabels},
		{"Pods of another app", labelPods("app", "bank"), onlyItsLabels},
		{"Pods of another Foo", labelPods("controller", "bar"), onlyItsLabels},
		{"Pods with an annotation", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"inject": "yes"} }, onlyItsLabels},
		{"another container", addContainer, onlyOne},
		{"only another container", func(d *appsv1.Deployment) { nginxOf(d).Name = "another" }, onlyOne},
	}),
	updates: slices.Concat(podWrites(keepPods), containerWrites, []attempt[*appsv1.Deployment]{
		{"nothing", func(*appsv1.Deployment) {}, ""},
		{"the size", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, ""},
		{"the owned labels, restored", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "nginx" }, ""},
		{"more Pods than a Foo may ask for", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"the owner, removed", setOwners(), onlyAFoos},
		{"the owner, to another Foo", changeOwner(func(r *metav1.OwnerReference) { r.UID = "1" }), onlyAFoos},
		{"a label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "red"} }, keepMetadata},
		{"others' annotation", func(d *appsv1.Deployment) { d.Annotations["team"] = "red" }, keepMetadata},
		{"others' annotation, removed", func(d *appsv1.Deployment) { delete(d.Annotations, "team") }, keepMetadata},
		{"the consent to adoption, removed", spend, keepMetadata},
		{"all annotations, removed", func(d *appsv1.Deployment) { d.Annotations = nil }, keepMetadata},
		{"a finalizer", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/hold"} }, keepMetadata},
		{"the strategy", func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, keepSettings},
		{"a pause", func(d *appsv1.Deployment) { d.Spec.Paused = true }, keepSettings},
		{"Pods that others' Service selects", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "bank" }, keepPodLabels},
		{"an empty label", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "" }, keepPodLabels},
		{"another value of an owned label", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "bank" }, keepPodLabels},
		{"others' label of the Pods, removed", func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, "team") }, keepPodLabels},
		{"an annotation of the Pods", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"inject": "yes"} }, keepPodLabels},
		{"another container", addContainer, keepContainers},
		{"others' container, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[:1] }, keepContainers},
		{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, keepContainers},
		{"the container nginx, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[1:] }, onlyNginx},
	}),
	// The owners are the ConfigMap, bar, and at last foo as the controller.
	adoptions: []attempt[*appsv1.Deployment]{
		{"as the controller does", func(*appsv1.Deployment) {}, ""},
		{"without removing the consent", consentTo("foo"), ""},
		{"with the consent for another Foo", consentTo("bar"), keepMetadata},
		{"without becoming its controller", func(d *appsv1.Deployment) { d.OwnerReferences[2].Controller = nil }, onlyAFoos},
		{"without the ConfigMap", func(d *appsv1.Deployment) { d.OwnerReferences = d.OwnerReferences[1:] }, onlyAFoos},
		{"without the other Foo", func(d *appsv1.Deployment) { d.OwnerReferences = slices.Delete(d.OwnerReferences, 1, 2) }, onlyAFoos},
		{"with the ConfigMap changed", func(d *appsv1.Deployment) { d.OwnerReferences[0].Name = "another" }, onlyAFoos},
		{"beside its earlier reference", func(d *appsv1.Deployment) {
			d.OwnerReferences = append([]metav1.OwnerReference{ownerRef("Foo", "foo")}, d.OwnerReferences...)
		}, onlyAFoos},
		{"for another Foo", func(d *appsv1.Deployment) { d.OwnerReferences[2].Name = "bar" }, onlyAFoos},
		{"for a Foo with the ConfigMap's UID, in its place", func(d *appsv1.Deployment) {
			d.OwnerReferences = d.OwnerReferences[1:]
			d.OwnerReferences[1].UID = "uid-other"
		}, onlyAFoos},
		{"in another version of the API", func(d *appsv1.Deployment) { d.OwnerReferences[2].APIVersion = "samplecontroller.k8s.io/v9" }, onlyAFoos},
		{"without others' annotation", func(d *appsv1.Deployment) { delete(d.Annotations, "team") }, keepMetadata},
		{"without all annotations", func(d *appsv1.Deployment) { d.Annotations = nil }, keepMetadata},
		{"with others' annotation changed", func(d *appsv1.Deployment) { d.Annotations["team"] = "red" }, keepMetadata},
		{"with one more annotation", func(d *appsv1.Deployment) { d.Annotations["inject"] = "yes" }, keepMetadata},
		{"with a label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "red"} }, keepMetadata},
		{"with a command for others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, keepContainers},
		{"with a command for nginx", func(d *appsv1.Deployment) { nginxOf(d).Command = shell }, onlyItsImage},
	},
})

// The image's tag decides which imagePullPolicy the API server sets.
func TestTheControllerCreatesDeploymentsWithAnyImage(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, image := range []string{
		"nginx", "nginx:latest", "nginx:1.29", "nginx" + digest, "nginx:1.29" + digest, "nginx:latest" + digest,
		"registry.example.com:5000/web/nginx", "registry.example.com:5000/web/nginx:latest", "registry.example.com:5000/web/nginx:v1",
		"registry.example.com:5000/web/nginx" + digest, "nginx:latest-alpine", "latest", "latest:1",
	} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			s, row := newServer(t, image), plan.Deployment(image)
			made := row.Desired(newFoo("foo"), nil)
			if err := s.create(t, made); err != nil {
				t.Errorf("create: %v", err)
			}
			without := deployments.own(t, newFoo("foo"))
			podOf(without).Containers = podOf(without).Containers[1:]
			if err := s.update(t, without, row.DesiredUpdate(without, newFoo("foo"), nil)); err != nil {
				t.Errorf("add the container: %v", err)
			}
			for _, other := range []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever} {
				if other != nginxOf(stored(t, made)).ImagePullPolicy {
					pulled := made.DeepCopy()
					nginxOf(pulled).ImagePullPolicy = other
					if !isRefused(t, s.create(t, pulled)) {
						t.Errorf("create: imagePullPolicy may be %s, which is not the API server's default", other)
					}
				}
			}
		})
	}
}
