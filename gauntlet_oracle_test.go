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

package main

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
	// restTime is how long the world is given after one fault: what came late,
	// and the back-off of what it made fail, end within it.
	restTime = 30 * time.Second
	// quietTime has several resyncs in it.
	quietTime = 3*gauntletResync + time.Second
)

// state is what there is when all has come to rest.
type state struct {
	Foos        []*samplev1alpha1.Foo
	Deployments []*appsv1.Deployment
}

func (w *world) state() state {
	var s state
	for _, object := range w.api.list("foos", w.api.version()) {
		s.Foos = append(s.Foos, object.(*samplev1alpha1.Foo))
	}
	for _, object := range w.api.list("deployments", w.api.version()) {
		s.Deployments = append(s.Deployments, object.(*appsv1.Deployment))
	}
	return s
}

// judge is the oracle. It lets the world come to rest and complains if that is
// not as every Foo asks, or if anybody goes on.
func (w *world) judge(rest time.Duration) state {
	advance(rest)
	s := w.state()
	for _, foo := range s.Foos {
		w.judgeFoo(s, foo)
	}
	for _, deployment := range s.Deployments {
		ref := controllerOf(deployment)
		if ref != nil && !slices.ContainsFunc(s.Foos, func(foo *samplev1alpha1.Foo) bool { return foo.UID == ref.UID }) {
			w.complain("Deployment %s belongs to a Foo that is gone (%s)", deployment.Name, ref.UID)
		}
	}
	w.judgeQuiet()
	w.judgeEvents(s)
	w.judgeTruth()
	return s
}

// judgeTruth complains of every moment at which a Foo said what was not true.
func (w *world) judgeTruth() {
	var history oracle.History
	changes, _ := w.api.next(0)
	for _, change := range changes {
		switch object := change.object.(type) {
		case *samplev1alpha1.Foo:
			history.AddFoo(object, change.kind == watch.Deleted)
		case *appsv1.Deployment:
			history.AddDeployment(object, change.kind == watch.Deleted)
		}
	}
	for _, lie := range history.Lies() {
		w.complain("%s", lie)
	}
}

// judgeEvents complains of a transition of which the controller that wrote it,
// and lives, has recorded no event.
func (w *world) judgeEvents(s state) {
	for _, session := range w.sessions {
		session.mu.Lock()
		for _, foo := range s.Foos {
			if untold := session.untold[foo.UID]; untold > 0 && !session.dead {
				w.complain("%s recorded no event for %d transitions of Foo %s", session.name, untold, foo.Name)
			}
		}
		session.mu.Unlock()
	}
}

// judgeFoo judges one Foo and what it has.
func (w *world) judgeFoo(s state, foo *samplev1alpha1.Foo) {
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
		w.complain("Foo %s has no Deployment %s", foo.Name, foo.Spec.DeploymentName)
	case !slices.Contains(controlled, named.Name):
		// What it had before goes on serving: two, if a crash came between the making
		// of the second and the removal of the first.
		w.judgeConflict(foo, named)
	case len(controlled) > 1:
		w.complain("Foo %s has %d Deployments: %v", foo.Name, len(controlled), controlled)
	default:
		w.judgeDeployment(foo, named)
		w.judgeStatus(foo, metav1.ConditionTrue, "Available")
		if status := foo.Status; status.Replicas != *named.Spec.Replicas || status.AvailableReplicas != *named.Spec.Replicas {
			w.complain("Foo %s reports %d replicas, %d available, of %d", foo.Name, status.Replicas, status.AvailableReplicas, *named.Spec.Replicas)
		}
	}
}

// judgeConflict judges a Foo whose Deployment's name is somebody else's.
func (w *world) judgeConflict(foo *samplev1alpha1.Foo, taken *appsv1.Deployment) {
	if metav1.GetControllerOf(taken) == nil && taken.Annotations[samplev1alpha1.AnnotationAdoptBy] == foo.Name {
		w.complain("Foo %s has not adopted Deployment %s", foo.Name, taken.Name)
	}
	w.judgeStatus(foo, metav1.ConditionFalse, "DeploymentConflict")
}

// judgeDeployment judges the fields that a Foo owns of its Deployment.
func (w *world) judgeDeployment(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) {
	if foo.Spec.Replicas != nil && *foo.Spec.Replicas != *deployment.Spec.Replicas {
		w.complain("Deployment %s has %d replicas, Foo %s asks for %d", deployment.Name, *deployment.Spec.Replicas, foo.Name, *foo.Spec.Replicas)
	}
	labels, selector := deployment.Spec.Template.Labels, deployment.Spec.Selector.MatchLabels
	for _, key := range []string{"app", "controller"} {
		want := map[string]string{"app": "nginx", "controller": foo.Name}[key]
		if selected, ok := selector[key]; ok {
			want = selected
		}
		if labels[key] != want {
			w.complain("the Pods of Deployment %s have the label %s=%s, not %s", deployment.Name, key, labels[key], want)
		}
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == "nginx" && container.Image == "nginx:latest" {
			return
		}
	}
	w.complain("Deployment %s has no container nginx of nginx:latest", deployment.Name)
}

func (w *world) judgeStatus(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) {
	ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready")
	if ready == nil {
		w.complain("Foo %s has no condition", foo.Name)
		return
	}
	if ready.Status != status || ready.Reason != reason {
		w.complain("Foo %s is Ready=%s, %s (%s), not %s, %s", foo.Name, ready.Status, ready.Reason, ready.Message, status, reason)
	}
	if foo.Status.ObservedGeneration != foo.Generation || ready.ObservedGeneration != foo.Generation {
		w.complain("Foo %s is of generation %d, its status of %d, its condition of %d", foo.Name, foo.Generation, foo.Status.ObservedGeneration, ready.ObservedGeneration)
	}
}

// judgeQuiet complains of any call in the time of several resyncs.
func (w *world) judgeQuiet() {
	w.mu.Lock()
	before := len(w.moments)
	w.mu.Unlock()
	w.note("from here on there should be no call")
	advance(quietTime)
	w.mu.Lock()
	after := w.moments[before:]
	w.mu.Unlock()
	if len(after) > 0 {
		w.complain("there is no end of calls: %v", after)
	}
}

// judgeAgainst complains of any difference from the run without faults.
func (w *world) judgeAgainst(reference, s state) {
	if want, got := withoutVersions(reference), withoutVersions(s); !equality.Semantic.DeepEqual(want, got) {
		w.complain("the final state is not that of the run without faults (-want +got):\n%s", diff.Diff(want, got))
	}
}

// withoutVersions returns a state without what may differ between runs: versions,
// times, and how often a Deployment was made.
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
