// SPDX-License-Identifier: Apache-2.0

// The Deployment: its row, what the controller writes, and what someone with the
// controller's token may try with it.

package policy

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/kinds"
)

var deployments = &row{
	plausible: func(child object, random *rand.Rand) { plausibleDeployment(child.(*appsv1.Deployment), random) },
	others:    func(child object) { shareDeployment(child.(*appsv1.Deployment)) },
	admits:    reflect.TypeFor[appsv1.Deployment](),
	creates: anyType(slices.Concat(admitted, stolen, []attempt[*appsv1.Deployment]{
		{"as an older release and upstream's controller make it", withoutSettings, ""},
		{"with a user of the platform's", func(d *appsv1.Deployment) { podOf(d).SecurityContext.RunAsUser = nil }, ""},
		{"11 Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"no Pods", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, onlyTenPods},
		{"a selector of others' Pods", func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "bank" }, "spec.selector"},
	})...),
	updates: anyType(slices.Concat(admitted, stolen, []attempt[*appsv1.Deployment]{
		{"the owned labels, restored", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "nginx" }, ""},
		{"more Pods than a Foo may ask for", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(11)) }, onlyTenPods},
		{"others' label of the Pods, removed", func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, "team") }, "labels[team]"},
		{"others' container, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[:1] }, "containers[sidecar]"},
		{"others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, "containers[sidecar].command"},
		{"others' container, with requests", func(d *appsv1.Deployment) {
			podOf(d).Containers[1].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, ""},
		{"the container nginx, removed", func(d *appsv1.Deployment) { podOf(d).Containers = podOf(d).Containers[1:] }, "containers[nginx]"},
		{"the container nginx twice", func(d *appsv1.Deployment) {
			podOf(d).Containers = append(podOf(d).Containers, *nginxOf(d))
		}, "containers[nginx]"},
		{"others' user", func(d *appsv1.Deployment) { podOf(d).SecurityContext.RunAsUser = nil }, "spec.template.spec.securityContext.runAsUser"},
	})...),
	// The owners are the ConfigMap, bar, and at last foo as the controller.
	adoptions: anyType(slices.Concat(admitted[1:], stolen[3:], []attempt[*appsv1.Deployment]{
		{"with a command for others' container", func(d *appsv1.Deployment) { podOf(d).Containers[1].Command = shell }, "containers[sidecar].command"},
	})...),
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
			s, row, foo := newServer(t, image), kinds.Declared(kinds.Options{Image: image})[0].Children[0], deployments.newFoo("foo", 0)
			made := row.Desired(foo, nil, nil).(*appsv1.Deployment)
			if err := s.create(t, made); err != nil {
				t.Errorf("create: %v", err)
			}
			without := deployments.own(t, foo).(*appsv1.Deployment)
			podOf(without).Containers = podOf(without).Containers[1:]
			if err := s.patch(t, without, deployments.patched(t, without, row.DesiredUpdate(without, foo, nil))); err != nil {
				t.Errorf("add the container: %v", err)
			}
			for _, other := range []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever} {
				if other != nginxOf(stored(t, made)).ImagePullPolicy && other != corev1.PullAlways {
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
		row := kinds.Declared(kinds.Options{Image: image})[0].Children[0]
		created := s.create(t, row.Desired(foo, nil, nil))
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

// onlyTenPods is a part of a message.
const onlyTenPods = "replicas only to a number from 1 to 10"

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

// addContainer adds a container with the same image and another name.
func addContainer(d *appsv1.Deployment) {
	podOf(d).Containers = append(podOf(d).Containers, corev1.Container{Name: "another", Image: shippedImage})
}

var shell = []string{"sh", "-c", "true"}
