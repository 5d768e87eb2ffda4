// SPDX-License-Identifier: Apache-2.0

// The cases of the fuzz targets for Deployments: their selectors, Pods and rollouts.

package footest

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fuzzDeployment makes a Deployment of a case. The lists below have its details.
func fuzzDeployment(object *appsv1.Deployment, c ChildCase, fill *Filler, words string) {
	base := Deployment("a")
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
	{name: "handed over, with a selector of its own", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Selector: selectorBoth})},
	{name: "rolling out", Script: script(fooCase{Status: 1}, ChildCase{Progress: rolloutHalf})},
	{name: "not seen by its controller", Script: script(fooCase{}, ChildCase{Progress: rolloutUnseen})},
	{name: "no Pods, with a long message", Script: script(fooCase{Words: 2}, ChildCase{Progress: rolloutReplicaFailure}), Words: "quota \u00e4\U0001f600"},
	{name: "stuck", Script: script(fooCase{}, ChildCase{Progress: rolloutStuck}), Words: "ProgressDeadlineExceeded"},
}
