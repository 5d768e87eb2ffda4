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

// The cases of the fuzz targets: what a Foo, its status and Deployments can be like.

package footest

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The bytes of a fuzz target's script choose from these lists.

// pick returns the element that a byte of a script chooses.
func pick[T any](choice byte, from []T) T { return from[int(choice)%len(from)] }

var (
	longName = strings.Repeat("a", 253)

	deploymentNames = []string{"web", "old", "older", longName}
	// A Foo without a name for its Deployment may have been stored before the rule
	// existed.
	wantedNames = []string{"web", "old", longName, ""}
	wantedSizes = []func(*samplev1alpha1.Foo){WithReplicas(2), WithoutReplicas, WithReplicas(10), WithReplicas(0), WithReplicas(-1)}
	deletings   = []bool{false, true}
	fooStatuses = []func() samplev1alpha1.FooStatus{noStatus, settledStatus, conflictStatus, olderStatus}
	repeats     = []int{1, 40, 40_000}
	adoptions   = []string{"", "a", "b"}
	sizes       = []*int32{new(int32(2)), new(int32(5)), new(int32(0)), nil}
)

func noStatus() samplev1alpha1.FooStatus      { return samplev1alpha1.FooStatus{} }
func settledStatus() samplev1alpha1.FooStatus { return Settled("a") }

// conflictStatus returns the status of a Foo whose name for the Deployment is taken.
func conflictStatus() samplev1alpha1.FooStatus {
	return samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Conditions: Ready(metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentConflict, ConflictWithB, Earlier),
	}
}

// olderStatus returns the status of an earlier spec, with another condition of somebody
// else.
func olderStatus() samplev1alpha1.FooStatus {
	status := Settled("a")
	status.ObservedGeneration = 0
	status.Conditions[0].ObservedGeneration = 0
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Seen", LastTransitionTime: Earlier,
	})
	return status
}

// The owners of a Deployment.
const (
	ownerThisFoo = iota
	ownerNobody
	ownerOtherFoo
	ownerEarlierFoo
	ownerFooOfAnotherGroup
	ownerAnotherKind
	ownerThisFooInAnotherVersion
	ownerThisFooButNotItsController
	ownerAnotherControlsThisFooOwns
)

var owners = [][]metav1.OwnerReference{
	ownerThisFoo:                    {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", true)},
	ownerNobody:                     nil,
	ownerOtherFoo:                   {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "b", "uid-b", true)},
	ownerEarlierFoo:                 {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-earlier", true)},
	ownerFooOfAnotherGroup:          {ownerRef("example.com/v1alpha1", "Foo", "a", "uid-a", true)},
	ownerAnotherKind:                {ownerRef("samplecontroller.k8s.io/v1alpha1", "Bar", "a", "uid-a", true)},
	ownerThisFooInAnotherVersion:    {ownerRef("samplecontroller.k8s.io/v1", "Foo", "a", "uid-a", true)},
	ownerThisFooButNotItsController: {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", false)},
	ownerAnotherControlsThisFooOwns: {
		ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", false), ownerRef("example.com/v1", "Set", "s", "uid-s", true),
	},
}

func ownerRef(apiVersion, kind, name string, uid types.UID, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &controller}
}

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
const (
	containerOurs = iota
	containerDrifted
	containerMissing
	containerAmongOthers
)

var containers = [][]corev1.Container{
	containerOurs:        {{Name: "nginx", Image: "nginx:latest", ImagePullPolicy: corev1.PullAlways}},
	containerDrifted:     {{Name: "nginx", Image: "nginx:1", Command: []string{"sleep"}}},
	containerMissing:     {{Name: "other", Image: "other:1"}},
	containerAmongOthers: {{Name: "proxy", Image: "envoy:1"}, {Name: "nginx", Image: "nginx:latest"}, {Name: "log", Image: "log:1"}},
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

// The changes of the Foo that the caches have not seen.
var fooNews = []func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo{
	func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo { return foo },
	func(*samplev1alpha1.Foo) *samplev1alpha1.Foo { return nil },
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName, foo.Generation = "older", 2 }),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas, foo.Generation = new(int32(7)), 2 }),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.UID, foo.Status = "uid-new", samplev1alpha1.FooStatus{} }),
	changedFoo(BeingDeleted),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.Status = olderStatus() }),
}

func changedFoo(change func(*samplev1alpha1.Foo)) func(*samplev1alpha1.Foo) *samplev1alpha1.Foo {
	return func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
		foo.ResourceVersion = "30"
		change(foo)
		return foo
	}
}

// The changes of a Deployment that the caches have not seen.
var deploymentNews = []func(deployment *appsv1.Deployment) *appsv1.Deployment{
	func(deployment *appsv1.Deployment) *appsv1.Deployment { return deployment },
	func(*appsv1.Deployment) *appsv1.Deployment { return nil },
	changedDeployment(WithoutOwner),
	changedDeployment(func(deployment *appsv1.Deployment) { deployment.OwnerReferences = owners[ownerOtherFoo] }),
	changedDeployment(func(deployment *appsv1.Deployment) { deployment.OwnerReferences = owners[ownerThisFoo] }),
	changedDeployment(Terminating),
	changedDeployment(func(deployment *appsv1.Deployment) {
		deployment.UID, deployment.OwnerReferences, deployment.Annotations = "uid-again", nil, nil
	}),
	changedDeployment(func(deployment *appsv1.Deployment) {
		deployment.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "b", "team": "b"}
	}),
}

func changedDeployment(change DeploymentOption) func(*appsv1.Deployment) *appsv1.Deployment {
	return func(deployment *appsv1.Deployment) *appsv1.Deployment {
		deployment.ResourceVersion = "30"
		change(deployment)
		return deployment
	}
}
