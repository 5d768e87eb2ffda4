// SPDX-License-Identifier: Apache-2.0

// The Deployment: its row, and what somebody with the controller's token may try with it.

package policy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
		{"as an older release and upstream's controller make it", withoutSettings, ""},
		{"10 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(10)) }, ""},
		{"11 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"no Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, onlyTenPods},
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
		{"the size", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, ""},
		{"the owned labels, restored", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "nginx" }, ""},
		{"more Pods than a Foo may ask for", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
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
			if err := s.patch(t, without, deployments.patched(t, without, row.DesiredUpdate(without, newFoo("foo"), nil))); err != nil {
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

// While an upgrade changes the image, the leader of before and the one of after may both
// write, and so may that of before after a rollback.
func TestTheEarlierImageMayBeWrittenToo(t *testing.T) {
	installed := shipped(t)
	for _, o := range installed {
		if account, ok := o.(*corev1.ServiceAccount); ok {
			account.Annotations["samplecontroller.k8s.io/earlier-image"] = "nginx:1.28"
		}
	}
	s, running := newServerWith(t, "nginx:1.29", installed), deployments.own(t, newFoo("foo"))
	for image, want := range map[string]bool{"nginx:1.28": true, "nginx:1.29": true, "nginx:1.27": false, shippedImage: false} {
		row := plan.Deployment(image)
		created := s.create(t, row.Desired(newFoo("foo"), nil))
		changed := s.patch(t, running, deployments.patched(t, running, row.DesiredUpdate(running, newFoo("foo"), nil)))
		if (created == nil) != want || (changed == nil) != want {
			t.Errorf("%s: create: %v, update: %v", image, created, changed)
		}
	}
}

// withoutSettings takes away the settings of new Pods.
func withoutSettings(d *appsv1.Deployment) {
	nginx := corev1.Container{Name: "nginx", Image: nginxOf(d).Image}
	d.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{nginx}}
}
