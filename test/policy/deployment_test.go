// SPDX-License-Identifier: Apache-2.0

// The Deployment: its row, what the controller writes, and what someone with the
// controller's token may try with it.

package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/plan"
)

var deployments = &row{
	plausible: func(child object, random *rand.Rand) { plausibleDeployment(child.(*appsv1.Deployment), random) },
	others:    func(child object) { shareDeployment(child.(*appsv1.Deployment)) },
	creates: anyType(slices.Concat(podWrites(onlyPlainPods), containerWrites, []attempt[*appsv1.Deployment]{
		{"as an older release and upstream's controller make it", withoutSettings, ""},
		{"11 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"no Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, onlyTenPods},
		{"Pods that others' Service selects", labelPods("service", "bank"), onlyItsLabels},
		{"Pods of another app", labelPods("app", "bank"), onlyItsLabels},
		{"Pods of another Foo", labelPods("controller", "bar"), onlyItsLabels},
		{"another container", addContainer, onlyOne},
	})...),
	updates: anyType(slices.Concat(podWrites(keepPods), containerWrites, []attempt[*appsv1.Deployment]{
		{"the owned labels, restored", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "nginx" }, ""},
		{"more Pods than a Foo may ask for", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"a pause", func(d *appsv1.Deployment) { d.Spec.Paused = true }, keepSettings},
		{"Pods that others' Service selects", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "bank" }, keepPodLabels},
		{"an empty label", func(d *appsv1.Deployment) { d.Spec.Template.Labels["service"] = "" }, keepPodLabels},
		{"another value of an owned label", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "bank" }, keepPodLabels},
		{"others' label of the Pods, removed", func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, "team") }, keepPodLabels},
		{"another container", addContainer, keepContainers},
		{"others' container, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[:1] }, keepContainers},
		{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, keepContainers},
		{"the container nginx, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[1:] }, onlyNginx},
	})...),
	// The owners are the ConfigMap, bar, and at last foo as the controller.
	adoptions: anyType([]attempt[*appsv1.Deployment]{
		{"with a command for others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, keepContainers},
		{"with a command for nginx", func(d *appsv1.Deployment) { nginxOf(d).Command = shell }, onlyItsImage},
	}...),
}

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
			s, row, foo := newServer(t, image), plan.Foos(image).Children[0], deployments.newFoo("foo", 0)
			made := row.Desired(foo, nil).(*appsv1.Deployment)
			if err := s.create(t, made); err != nil {
				t.Errorf("create: %v", err)
			}
			without := deployments.own(t, foo).(*appsv1.Deployment)
			podOf(without).Containers = podOf(without).Containers[1:]
			if err := s.patch(t, without, deployments.patched(t, without, row.DesiredUpdate(without, foo, nil))); err != nil {
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
	foo := deployments.newFoo("foo", 0)
	s, running := newServerWith(t, "nginx:1.29", installed), deployments.own(t, foo)
	for image, want := range map[string]bool{"nginx:1.28": true, "nginx:1.29": true, "nginx:1.27": false, shippedImage: false} {
		row := plan.Foos(image).Children[0]
		created := s.create(t, row.Desired(foo, nil))
		changed := s.patch(t, running, deployments.patched(t, running, row.DesiredUpdate(running, foo, nil)))
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

// Parts of the policy's messages.
const (
	onlyTenPods    = "replicas only to a number from 1 to 10"
	onlyItsLabels  = "only with the labels app=nginx and controller="
	onlyPlainPods  = "only with plain Pods"
	onlyOne        = "only with the one container nginx"
	onlyNginx      = "only with the image nginx:latest in the container nginx"
	onlyItsImage   = "may not set anything in the container nginx except its image"
	keepSettings   = "may not change a Deployment's settings except replicas and template"
	keepPodLabels  = "may change only the labels app and controller"
	keepPods       = "may not change a Deployment's Pods except for the container nginx"
	keepContainers = "may not change a Deployment's containers except nginx"
)

// plausibleDeployment gives half of the Deployments the owned container, and a third a
// selector that asks for another label than the Foo would set.
func plausibleDeployment(d *appsv1.Deployment, random *rand.Rand) {
	if len(podOf(d).Containers) == 0 {
		addContainer(d)
	}
	if random.IntN(2) == 0 {
		podOf(d).Containers[0].Name = "nginx"
	}
	if random.IntN(3) == 0 {
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	}
}

// shareDeployment adds what others may have added to a Foo's Deployment.
func shareDeployment(d *appsv1.Deployment) {
	d.Spec.Template.Labels["team"] = "blue"
	podOf(d).Containers = append(podOf(d).Containers, corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"})
}

func podOf(d *appsv1.Deployment) *corev1.PodSpec { return &d.Spec.Template.Spec }

// nginxOf returns the owned container of a Deployment.
func nginxOf(d *appsv1.Deployment) *corev1.Container {
	for i := range podOf(d).Containers {
		if c := &podOf(d).Containers[i]; c.Name == "nginx" {
			return c
		}
	}
	return &corev1.Container{}
}

// labelPods sets a label of the Pods, also in the selector.
func labelPods(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Labels[key] = value
		d.Spec.Selector.MatchLabels = d.Spec.Template.Labels
	}
}

// addContainer adds a container with the same image and another name.
func addContainer(d *appsv1.Deployment) {
	podOf(d).Containers = append(podOf(d).Containers, corev1.Container{Name: "another", Image: shippedImage})
}

var shell = []string{"sh", "-c", "true"}

// containerWrites change the container nginx. That none of its other fields may be set, nor any
// other field of a Deployment or its Pods, is a case of the tests of each field.
var containerWrites = []attempt[*appsv1.Deployment]{
	{"another image", func(d *appsv1.Deployment) { nginxOf(d).Image = "busybox:latest" }, onlyNginx},
	{"another tag", func(d *appsv1.Deployment) { nginxOf(d).Image = "nginx:1" }, onlyNginx},
	{"an image of that name from elsewhere", func(d *appsv1.Deployment) { nginxOf(d).Image = "evil.example.com/nginx:latest" }, onlyNginx},
	{"a command", func(d *appsv1.Deployment) { nginxOf(d).Command = shell }, onlyItsImage},
}

// podWrites change the Pod, as containerWrites do the container.
func podWrites(refusal string) []attempt[*appsv1.Deployment] {
	return []attempt[*appsv1.Deployment]{
		{"a Secret", func(d *appsv1.Deployment) {
			podOf(d).Volumes = []corev1.Volume{{Name: "loot", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "loot"}}}}
			nginxOf(d).VolumeMounts = []corev1.VolumeMount{{Name: "loot", MountPath: "/loot"}}
		}, refusal},
		{"the node's network", func(d *appsv1.Deployment) { podOf(d).HostNetwork = true }, refusal},
	}
}
