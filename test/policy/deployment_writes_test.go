// SPDX-License-Identifier: Apache-2.0

// The parts of the attempts with Deployments, and the policy's messages.

package policy

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parts of the policy's messages.
const (
	onlyTenPods    = "replicas only to 1 to 10"
	onlyPlain      = "only without labels, annotations, finalizers and settings of its own"
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

// containerWrites change the container nginx.
var containerWrites = []attempt[*appsv1.Deployment]{
	{"another image", func(d *appsv1.Deployment) { nginxOf(d).Image = "busybox:latest" }, onlyNginx},
	{"another tag", func(d *appsv1.Deployment) { nginxOf(d).Image = "nginx:1" }, onlyNginx},
	{"an image of that name from elsewhere", func(d *appsv1.Deployment) { nginxOf(d).Image = "evil.example.com/nginx:latest" }, onlyNginx},
	{"a command", func(d *appsv1.Deployment) { nginxOf(d).Command = shell }, onlyItsImage},
	{"arguments", func(d *appsv1.Deployment) { nginxOf(d).Args = shell }, onlyItsImage},
	{"a command after the start", func(d *appsv1.Deployment) {
		nginxOf(d).Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: shell}}}
	}, onlyItsImage},
	{"a command as a probe", func(d *appsv1.Deployment) {
		nginxOf(d).LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: shell}}}
	}, onlyItsImage},
	{"a variable", func(d *appsv1.Deployment) { nginxOf(d).Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/x"}} }, onlyItsImage},
	{"variables from a Secret", func(d *appsv1.Deployment) {
		nginxOf(d).EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "loot"}}}}
	}, onlyItsImage},
	{"a port of the node", func(d *appsv1.Deployment) {
		nginxOf(d).Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}, onlyItsImage},
	{"privileges", func(d *appsv1.Deployment) {
		nginxOf(d).SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
	}, onlyItsImage},
	{"a whole node's memory", func(d *appsv1.Deployment) {
		nginxOf(d).Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ti")}
	}, onlyItsImage},
	{"a terminal", func(d *appsv1.Deployment) { nginxOf(d).TTY = true }, onlyItsImage},
	{"an image that is never pulled", func(d *appsv1.Deployment) { nginxOf(d).ImagePullPolicy = corev1.PullNever }, onlyItsImage},
}

// podWrites change the Pod.
func podWrites(refusal string) []attempt[*appsv1.Deployment] {
	return []attempt[*appsv1.Deployment]{
		{"a Secret", func(d *appsv1.Deployment) {
			podOf(d).Volumes = []corev1.Volume{{Name: "loot", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "loot"}}}}
			nginxOf(d).VolumeMounts = []corev1.VolumeMount{{Name: "loot", MountPath: "/loot"}}
		}, refusal},
		{"an init container", func(d *appsv1.Deployment) {
			podOf(d).InitContainers = []corev1.Container{{Name: "init", Image: shippedImage}}
		}, refusal},
		{"an account", func(d *appsv1.Deployment) { podOf(d).ServiceAccountName = "admin" }, refusal},
		{"a token", func(d *appsv1.Deployment) { podOf(d).AutomountServiceAccountToken = new(true) }, refusal},
		{"the node's network", func(d *appsv1.Deployment) { podOf(d).HostNetwork = true }, refusal},
		{"the node's processes", func(d *appsv1.Deployment) { podOf(d).HostPID = true }, refusal},
		{"a user", func(d *appsv1.Deployment) {
			podOf(d).SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
		}, refusal},
		{"a node", func(d *appsv1.Deployment) { podOf(d).NodeName = "node-1" }, refusal},
		{"a place on each node", func(d *appsv1.Deployment) {
			podOf(d).Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, refusal},
		{"a priority", func(d *appsv1.Deployment) { podOf(d).PriorityClassName = "system-node-critical" }, refusal},
		{"another runtime", func(d *appsv1.Deployment) { podOf(d).RuntimeClassName = new("trusted") }, refusal},
		{"credentials for images", func(d *appsv1.Deployment) { podOf(d).ImagePullSecrets = []corev1.LocalObjectReference{{Name: "loot"}} }, refusal},
		{"names of hosts", func(d *appsv1.Deployment) {
			podOf(d).HostAliases = []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{"x"}}}
		}, refusal},
		{"Pods that never end", func(d *appsv1.Deployment) { podOf(d).TerminationGracePeriodSeconds = new(int64(86400)) }, refusal},
	}
}
