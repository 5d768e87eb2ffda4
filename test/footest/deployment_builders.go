// SPDX-License-Identifier: Apache-2.0

// Builders of Deployments, and the Deployments of the fuzz targets.

package footest

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Deployment returns a Deployment named "web" that the Foo named owner controls, with the
// API server's defaults: 2 Pods wanted, all of them available.
func Deployment(owner string, options ...ChildOption) *appsv1.Deployment {
	object := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: Namespace, UID: "uid-deployment", Generation: 1, ResourceVersion: "20",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: owner, UID: types.UID("uid-" + owner),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": owner}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx", "controller": owner}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	rows.DefaultDeployment(object)
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
	deployment := child.(*appsv1.Deployment)
	deployment.Annotations = map[string]string{"team": "a"}
	deployment.Labels = map[string]string{"cost-center": "7"}
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
	return object.DeepCopy()
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
	return Unstored(name).(*appsv1.Deployment)
}

// fuzzDeployment makes a Deployment of a case. The lists below have its details.
func fuzzDeployment(child Object, c ChildCase, fill *Filler, words string) {
	base, object := Deployment("a"), child.(*appsv1.Deployment)
	object.Spec, object.Status = base.Spec, base.Status
	object.Spec.Replicas = pick(c.Optional, sizes)
	selector := pick(c.Selector, selectors)
	object.Spec.Selector = &selector
	object.Spec.Template.Labels = pick(c.Selector, templateLabels)
	object.Spec.Template.Spec.Containers = pick(c.Content, containers)
	pick(c.Progress, rollouts)(&object.Status, words)
	if fill == nil {
		return
	}
	fill.Fill(&object.Spec.Strategy)
	fill.Fill(&object.Spec.MinReadySeconds)
	fill.Fill(&object.Spec.Paused)
	fill.Fill(&object.Spec.Template.Annotations)
	var pod corev1.PodSpec
	fill.Fill(&pod)
	pod.Containers = slices.Concat(object.Spec.Template.Spec.Containers, pod.Containers)
	object.Spec.Template.Spec = pod
}

var sizes = []*int32{new(int32(2)), new(int32(5)), new(int32(0)), nil}

// The selectors of a Deployment. The Pods' labels match them.
const (
	selectorOurs = iota
	selectorOtherValues
	selectorExpression
	selectorBoth
	selectorLong
	selectorOfOurLabels
)

var selectors = []metav1.LabelSelector{
	selectorOurs:        {MatchLabels: map[string]string{"app": "nginx", "controller": "a"}},
	selectorOtherValues: {MatchLabels: map[string]string{"app": "shop", "controller": "own"}},
	selectorExpression:  {MatchExpressions: []metav1.LabelSelectorRequirement{tierIs("front", "back")}},
	selectorBoth: {MatchLabels: map[string]string{"app": "shop"}, MatchExpressions: []metav1.LabelSelectorRequirement{
		tierIs("front"), {Key: "legacy", Operator: metav1.LabelSelectorOpDoesNotExist},
	}},
	selectorLong:        longSelector(),
	selectorOfOurLabels: selectorWithOurLabels(),
}

var templateLabels = []map[string]string{
	selectorOurs:        {"app": "nginx", "controller": "a"},
	selectorOtherValues: {"app": "shop", "controller": "own"},
	selectorExpression:  {"tier": "front"},
	selectorBoth:        {"app": "shop", "controller": "drifted", "tier": "front"},
	selectorLong:        {"tier": "front"},
	selectorOfOurLabels: {"app": "shop", "tier": "front"},
}

func tierIs(values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: values}
}

// longSelector returns a selector that is too long for the Foo's status.
func longSelector() metav1.LabelSelector {
	tiers := []string{"front"}
	for i := range 100 {
		tiers = append(tiers, fmt.Sprintf("%063d", i))
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{tierIs(tiers...)}}
}

func selectorWithOurLabels() metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"nginx"}},
		{Key: "controller", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

// The containers of a Deployment's Pods. The API server requires at least one.
var containers = [][]corev1.Container{
	contentAsked:   {{Name: "nginx", Image: "nginx:latest", ImagePullPolicy: corev1.PullAlways}},
	contentDrifted: {{Name: "nginx", Image: "nginx:1", Command: []string{"sleep"}}},
	contentMissing: {{Name: "other", Image: "other:1"}},
	contentEdited:  {{Name: "proxy", Image: "envoy:1"}, {Name: "nginx", Image: "nginx:latest"}, {Name: "log", Image: "log:1"}},
}

// The progress of a Deployment's rollout.
const (
	rolloutComplete = iota
	rolloutUnseen
	rolloutHalf
	rolloutReplicaFailure
	rolloutStuck
)

var rollouts = []func(status *appsv1.DeploymentStatus, words string){
	rolloutComplete: func(*appsv1.DeploymentStatus, string) {},
	rolloutUnseen:   func(status *appsv1.DeploymentStatus, _ string) { *status = appsv1.DeploymentStatus{} },
	rolloutHalf:     func(status *appsv1.DeploymentStatus, _ string) { status.AvailableReplicas = 1 },
	rolloutReplicaFailure: func(status *appsv1.DeploymentStatus, words string) {
		status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: words}}
	},
	rolloutStuck: func(status *appsv1.DeploymentStatus, words string) {
		status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: words}}
	},
}

// deploymentSeeds lead to every verdict about a rollout.
var deploymentSeeds = []FuzzSeed{
	{Name: "handed over, with a selector of its own", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Selector: selectorBoth})},
	{Name: "rolling out", Script: script(fooCase{Status: 1}, ChildCase{Progress: rolloutHalf})},
	{Name: "not seen by its controller", Script: script(fooCase{}, ChildCase{Progress: rolloutUnseen})},
	{Name: "no Pods, with a long message", Script: script(fooCase{Words: 2}, ChildCase{Progress: rolloutReplicaFailure}), Words: "quota \u00e4\U0001f600"},
	{Name: "stuck", Script: script(fooCase{}, ChildCase{Progress: rolloutStuck}), Words: "ProgressDeadlineExceeded"},
}
