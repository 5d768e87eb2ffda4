// SPDX-License-Identifier: Apache-2.0

// The writes that the tests of the admission policy try, and the policy's messages.

package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testcluster"
)

// write is a change that somebody with the controller's token may try. The tests try one
// for each rule of the policy; test/policy tries every field.
type write struct {
	what   string
	change func(*appsv1.Deployment)
	// refusal is part of the policy's message, or "" if the policy accepts the write.
	refusal string
}

// Parts of the policy's messages.
const (
	onlyForAFoo    = "only with a Foo as its controller and only owner"
	onlyAFoos      = "only a Deployment that a Foo controls"
	onlyTenPods    = "replicas only to 1 to 10"
	onlyPlain      = "only without labels, annotations, finalizers and settings of its own"
	onlyItsLabels  = "only with the labels app=nginx and controller="
	onlyPlainPods  = "only with plain Pods"
	onlyOne        = "only with the one container nginx"
	onlyNginx      = "only with the image nginx:latest in the container nginx"
	onlyItsImage   = "may not set anything in the container nginx except its image"
	keepMetadata   = "may not change a Deployment's labels, annotations and finalizers"
	keepSettings   = "may not change a Deployment's settings except replicas and template"
	keepPodLabels  = "may change only the labels app and controller"
	keepPods       = "may not change a Deployment's Pods except for the container nginx"
	keepContainers = "may not change a Deployment's containers except nginx"
)

// podOf and nginxOf return the parts of a Deployment that somebody with a stolen token
// would change.
func podOf(d *appsv1.Deployment) *corev1.PodSpec { return &d.Spec.Template.Spec }

func nginxOf(d *appsv1.Deployment) *corev1.Container {
	for i := range podOf(d).Containers {
		if c := &podOf(d).Containers[i]; c.Name == "nginx" {
			return c
		}
	}
	return &corev1.Container{}
}

// labelPods sets a label of the Pods, and adds it to the selector.
func labelPods(d *appsv1.Deployment, key, value string) {
	d.Spec.Template.Labels[key] = value
	d.Spec.Selector.MatchLabels = d.Spec.Template.Labels
}

// addVolume mounts a Secret in nginx.
func addVolume(d *appsv1.Deployment) {
	podOf(d).Volumes = append(podOf(d).Volumes, corev1.Volume{Name: "loot", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "loot"},
	}})
	nginxOf(d).VolumeMounts = []corev1.VolumeMount{{Name: "loot", MountPath: "/loot"}}
}

var shell = []string{"sh", "-c", "true"}

// anotherContainer returns a container with the same image and another name.
func anotherContainer() corev1.Container {
	return corev1.Container{Name: "another", Image: "nginx:latest"}
}

// containerWrites change the container nginx. The policy refuses them in a new Deployment
// and in an existing one.
var containerWrites = []write{
	{"another image", func(d *appsv1.Deployment) { nginxOf(d).Image = "busybox:latest" }, onlyNginx},
	{"a command", func(d *appsv1.Deployment) { nginxOf(d).Command = shell }, onlyItsImage},
	{"variables from a Secret", func(d *appsv1.Deployment) {
		nginxOf(d).EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "loot"}}}}
	}, onlyItsImage},
	{"an image that is never pulled", func(d *appsv1.Deployment) { nginxOf(d).ImagePullPolicy = corev1.PullNever }, onlyItsImage},
}

// podWrites change the Pod. The policy refuses them, too.
var podWrites = []write{
	{"a Secret", addVolume, ""},
	{"an init container", func(d *appsv1.Deployment) { podOf(d).InitContainers = []corev1.Container{anotherContainer()} }, ""},
	{"an account", func(d *appsv1.Deployment) { podOf(d).ServiceAccountName = "admin" }, ""},
	{"the node's network", func(d *appsv1.Deployment) {
		podOf(d).HostNetwork, podOf(d).SecurityContext.Sysctls = true, nil // valid only without each other
	}, ""},
}

// refusedWith returns a copy of writes, with a message for those that have none.
func refusedWith(writes []write, refusal string) []write {
	var all []write
	for _, w := range writes {
		if w.refusal == "" {
			w.refusal = refusal
		}
		all = append(all, w)
	}
	return all
}

func setOwners(owners ...metav1.OwnerReference) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.OwnerReferences = owners }
}

// owner returns the controller's reference to a Foo, changed.
func owner(change func(*metav1.OwnerReference)) metav1.OwnerReference {
	ref := foosDeployment().OwnerReferences[0]
	change(&ref)
	return ref
}

// isJudged checks the API server's answer to a write.
func isJudged(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Errorf("The write was refused: %v", err)
	case refusal != "" && (!testcluster.IsDeniedByPolicy(err) || !strings.Contains(err.Error(), refusal)):
		t.Errorf("The API server answered %v\nwant a refusal by the policy with %q", err, refusal)
	}
}
