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

// The checks at the end of a run, when the cluster has come to rest.

package simulation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/oracle"
)

const (
	// recoveryTime bounds the effects of one fault. Late writes and the back-off after
	// failures end within it.
	recoveryTime = 30 * time.Second
	// idleTime contains several resyncs.
	idleTime = 3*ResyncPeriod + time.Second
)

// state holds all objects at one time.
type state struct {
	Foos        []*samplev1alpha1.Foo
	Deployments []*appsv1.Deployment
}

func (c *cluster) state() state {
	var s state
	for _, object := range c.api.list("foos", c.api.version()) {
		s.Foos = append(s.Foos, object.(*samplev1alpha1.Foo))
	}
	for _, object := range c.api.list("deployments", c.api.version()) {
		s.Deployments = append(s.Deployments, object.(*appsv1.Deployment))
	}
	return s
}

// check lets the cluster come to rest, checks the state and the history, and returns the
// state.
func (c *cluster) check(rest time.Duration) state {
	advance(rest)
	s := c.state()
	for _, foo := range s.Foos {
		c.checkFoo(s, foo)
	}
	for _, deployment := range s.Deployments {
		ref := controllerOf(deployment)
		if ref != nil && !slices.ContainsFunc(s.Foos, func(foo *samplev1alpha1.Foo) bool { return foo.UID == ref.UID }) {
			c.violationf("Deployment %s belongs to a deleted Foo (%s)", deployment.Name, ref.UID)
		}
	}
	c.checkIdle()
	c.checkEvents(s)
	c.checkReadiness()
	return s
}

// checkReadiness checks that no Foo ever reported Ready before it was ready.
func (c *cluster) checkReadiness() {
	var history oracle.History
	changes, _ := c.api.next(0)
	for _, change := range changes {
		switch object := change.object.(type) {
		case *samplev1alpha1.Foo:
			history.AddFoo(object, change.kind == watch.Deleted)
		case *appsv1.Deployment:
			history.AddDeployment(object, change.kind == watch.Deleted)
		}
	}
	for _, lie := range history.Lies() {
		c.violationf("%s", lie)
	}
}

// checkEvents checks that each transition has an event, unless its controller crashed.
func (c *cluster) checkEvents(s state) {
	for _, conn := range c.connections {
		conn.mu.Lock()
		for _, foo := range s.Foos {
			if pending := conn.pendingEvents[foo.UID]; pending > 0 && !conn.dead {
				c.violationf("%s recorded no event for %d transitions of Foo %s", conn.name, pending, foo.Name)
			}
		}
		conn.mu.Unlock()
	}
}

// checkFoo checks one Foo and its Deployments.
func (c *cluster) checkFoo(s state, foo *samplev1alpha1.Foo) {
	var named *appsv1.Deployment
	var controlled []string
	for _, deployment := range s.Deployments {
		if deployment.Name == foo.Spec.DeploymentName {
			named = deployment
		}
		if ref := controllerOf(deployment); ref != nil && ref.UID == foo.UID {
			controlled = append(controlled, deployment.Name)
		}
	}
	switch {
	case named == nil:
		c.violationf("Foo %s has no Deployment %s", foo.Name, foo.Spec.DeploymentName)
	case !slices.Contains(controlled, named.Name):
		// The Foo keeps its Deployments. There are two if a crash happened between the
		// creation of the second and the deletion of the first.
		c.checkConflict(foo, named)
	case len(controlled) > 1:
		c.violationf("Foo %s has %d Deployments: %v", foo.Name, len(controlled), controlled)
	default:
		c.checkDeployment(foo, named)
		c.checkStatus(foo, metav1.ConditionTrue, "Available")
		if status := foo.Status; status.Replicas != *named.Spec.Replicas || status.AvailableReplicas != *named.Spec.Replicas {
			c.violationf("Foo %s reports %d replicas, %d available, of %d", foo.Name, status.Replicas, status.AvailableReplicas, *named.Spec.Replicas)
		}
	}
}

// checkConflict checks a Foo that asks for a Deployment which it does not control.
func (c *cluster) checkConflict(foo *samplev1alpha1.Foo, taken *appsv1.Deployment) {
	if metav1.GetControllerOf(taken) == nil && taken.Annotations[samplev1alpha1.AnnotationAdoptBy] == foo.Name {
		c.violationf("Foo %s has not adopted Deployment %s", foo.Name, taken.Name)
	}
	c.checkStatus(foo, metav1.ConditionFalse, "DeploymentConflict")
}

// checkDeployment checks the owned fields of a Foo's Deployment.
func (c *cluster) checkDeployment(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) {
	if foo.Spec.Replicas != nil && *foo.Spec.Replicas != *deployment.Spec.Replicas {
		c.violationf("Deployment %s has %d replicas, Foo %s asks for %d", deployment.Name, *deployment.Spec.Replicas, foo.Name, *foo.Spec.Replicas)
	}
	labels, selector := deployment.Spec.Template.Labels, deployment.Spec.Selector.MatchLabels
	for _, key := range []string{"app", "controller"} {
		want := map[string]string{"app": "nginx", "controller": foo.Name}[key]
		if selected, ok := selector[key]; ok {
			want = selected
		}
		if labels[key] != want {
			c.violationf("the Pods of Deployment %s have the label %s=%s, want %s", deployment.Name, key, labels[key], want)
		}
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == "nginx" && container.Image == "nginx:latest" {
			return
		}
	}
	c.violationf("Deployment %s has no container nginx of nginx:latest", deployment.Name)
}

func (c *cluster) checkStatus(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) {
	ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready")
	if ready == nil {
		c.violationf("Foo %s has no condition", foo.Name)
		return
	}
	if ready.Status != status || ready.Reason != reason {
		c.violationf("Foo %s has Ready=%s, %s (%s), want %s, %s", foo.Name, ready.Status, ready.Reason, ready.Message, status, reason)
	}
	if foo.Status.ObservedGeneration != foo.Generation || ready.ObservedGeneration != foo.Generation {
		c.violationf("Foo %s has generation %d, but observedGeneration is %d in its status and %d in its condition", foo.Name, foo.Generation, foo.Status.ObservedGeneration, ready.ObservedGeneration)
	}
}

// checkIdle checks that the controller makes no calls during several resyncs.
func (c *cluster) checkIdle() {
	c.mu.Lock()
	before := len(c.points)
	c.mu.Unlock()
	c.tracef("no calls are expected from here on")
	advance(idleTime)
	c.mu.Lock()
	after := c.points[before:]
	c.mu.Unlock()
	if len(after) > 0 {
		c.violationf("the calls do not end: %v", after)
	}
}

// checkAgainst checks that a state equals that of the run without faults.
func (c *cluster) checkAgainst(baseline, s state) {
	if want, got := withoutVersions(baseline), withoutVersions(s); !equality.Semantic.DeepEqual(want, got) {
		c.violationf("the final state differs from that of the run without faults (-want +got):\n%s", diff.Diff(want, got))
	}
}

// withoutVersions returns a state without the fields that may differ between runs:
// versions, times, and the number in a Deployment's UID.
func withoutVersions(s state) state {
	var same state
	for _, foo := range s.Foos {
		foo = foo.DeepCopy()
		foo.ResourceVersion = ""
		for i := range foo.Status.Conditions {
			foo.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		same.Foos = append(same.Foos, foo)
	}
	for _, deployment := range s.Deployments {
		deployment = deployment.DeepCopy()
		deployment.UID, deployment.ResourceVersion, deployment.Generation, deployment.Status.ObservedGeneration = "", "", 0, 0
		same.Deployments = append(same.Deployments, deployment)
	}
	return same
}
