// SPDX-License-Identifier: Apache-2.0

// Builders of Deployments.

package footest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Deployment returns a Deployment named "web" that the Foo named owner controls, with the
// API server's defaults: 2 Pods wanted, all of them available.
func Deployment(owner string, options ...ChildOption) *appsv1.Deployment {
	replicas := int32(2)
	isTrue := true
	object := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: Namespace, UID: "uid-deployment", Generation: 1, ResourceVersion: "20",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: owner, UID: types.UID("uid-" + owner),
				Controller: &isTrue, BlockOwnerDeletion: &isTrue,
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": owner}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx", "controller": owner}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	defaultDeployment(object)
	derivePullPolicies(object)
	for _, option := range options {
		option(object)
	}
	return object
}

// ScaledTo sets the replicas in the spec of a Deployment.
func ScaledTo(replicas int32) ChildOption {
	return Changed(func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = &replicas })
}

// WithImage sets the image of a Deployment's container.
func WithImage(image string) ChildOption {
	return Changed(func(deployment *appsv1.Deployment) { deployment.Spec.Template.Spec.Containers[0].Image = image })
}

// WithTemplateLabel sets a label of a Deployment's Pods.
func WithTemplateLabel(key, value string) ChildOption {
	return Changed(func(deployment *appsv1.Deployment) { deployment.Spec.Template.Labels[key] = value })
}

// WithAvailable sets the number of available Pods in the status of a Deployment.
func WithAvailable(available int32) ChildOption {
	return Changed(func(deployment *appsv1.Deployment) { deployment.Status.AvailableReplicas = available })
}

// WithSidecar makes the changes of others to fields that the Foo does not own.
func WithSidecar(child Object) {
	deployment := as[*appsv1.Deployment](child)
	deployment.Annotations = map[string]string{"team": "a"}
	deployment.Labels = map[string]string{"cost-centre": "7"}
	deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-03-01T11:00:00Z"}
	deployment.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "envoy:1"}}, deployment.Spec.Template.Spec.Containers...)
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// Created returns the Deployment that the controller creates for a Foo that asks for 2
// Pods.
func Created(owner string) *appsv1.Deployment {
	object := Deployment(owner)
	object.UID, object.ResourceVersion, object.Generation = "", "", 0
	object.Status = appsv1.DeploymentStatus{}
	object.Spec.Strategy, object.Spec.RevisionHistoryLimit, object.Spec.ProgressDeadlineSeconds = appsv1.DeploymentStrategy{}, nil, nil
	object.Spec.Template.Spec = restrictedPod
	return as[*appsv1.Deployment](copyOf(object))
}

// restrictedPod is a Pod that a namespace with the Pod Security Standard restricted accepts
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/), without a token.
var restrictedPod = corev1.PodSpec{
	AutomountServiceAccountToken: new(false),
	SecurityContext: &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(101)), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"},
		Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	},
	Volumes: []corev1.Volume{emptyDir("cache"), emptyDir("run")},
	Containers: []corev1.Container{{
		Name: "nginx", Image: "nginx:latest",
		VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/var/cache/nginx"}, {Name: "run", MountPath: "/run"}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}},
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// UnstoredDeployment is Unstored for Deployments.
func UnstoredDeployment(name string) *appsv1.Deployment {
	foo := Foo(name, WithChildName(name), WithFooUID("00000000-0000-0000-0000-000000000000"), WithoutReplicas)
	foo.Namespace = ""
	return as[*appsv1.Deployment](ownedBy(foo, newDeployment(foo), name))
}
