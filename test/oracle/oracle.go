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

// Package oracle checks the condition Ready of Foos against a record of all states of the
// Foos and of the Deployments in their namespaces.
//
// The rule: if a Foo reports Ready=True with observedGeneration G, then at some moment
// since G began it controlled a Deployment with the name, size and image that G asks for,
// rolled out and available. The package uses none of the controller's code.
package oracle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// History holds the states that watches of Foos and Deployments delivered. Both must have
// the same store, so that their resourceVersions can be compared. It is safe for
// concurrent use; its zero value is empty.
type History struct {
	mu          sync.Mutex
	foos        map[cache.ObjectName][]state[*samplev1alpha1.Foo]
	deployments map[cache.ObjectName][]state[*appsv1.Deployment]
}

// state is the state of an object from one version until the next.
type state[T any] struct {
	from    uint64
	object  T
	deleted bool
}

// AddFoo records a state of a Foo, or its deletion. Call it in the order of the watch.
func (h *History) AddFoo(foo *samplev1alpha1.Foo, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.foos == nil {
		h.foos = map[cache.ObjectName][]state[*samplev1alpha1.Foo]{}
	}
	key := cache.MetaObjectToName(foo)
	h.foos[key] = append(h.foos[key], state[*samplev1alpha1.Foo]{versionOf(foo), foo, deleted})
}

// AddDeployment records a state of a Deployment, or its deletion.
func (h *History) AddDeployment(deployment *appsv1.Deployment, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deployments == nil {
		h.deployments = map[cache.ObjectName][]state[*appsv1.Deployment]{}
	}
	key := cache.MetaObjectToName(deployment)
	h.deployments[key] = append(h.deployments[key], state[*appsv1.Deployment]{versionOf(deployment), deployment, deleted})
}

// versionOf returns an object's resourceVersion as a number. The tests' API servers use
// only numbers.
func versionOf(object metav1.Object) uint64 { return parseVersion(object.GetResourceVersion()) }

func parseVersion(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a resourceVersion is not a number: %v", err))
	}
	return version
}

// Lies returns a sentence for each state in which a Foo falsely reported Ready=True. It
// ignores states from before the record began.
func (h *History) Lies() []string { return h.lies(math.MaxUint64) }

// lies checks the states up to a version.
func (h *History) lies(upTo uint64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lies []string
	for _, states := range h.foos {
		for len(states) > 0 && states[len(states)-1].from > upTo {
			states = states[:len(states)-1]
		}
		lies = append(lies, h.liesOf(states)...)
	}
	return lies
}

// liesOf checks the states of the Foos of one name.
func (h *History) liesOf(states []state[*samplev1alpha1.Foo]) []string {
	var lies []string
	var uid types.UID
	var generation int64
	// The version at which the generation began, and whether the Foo has reported this
	// generation as ready already.
	var began uint64
	claimed := false
	for i, s := range states {
		foo := s.object
		if foo.UID != uid || foo.Generation != generation {
			uid, generation, began, claimed = foo.UID, foo.Generation, s.from, false
			if i == 0 && claimsReady(foo) {
				claimed = true // from before the record
			}
		}
		claims := claimsReady(foo) && !s.deleted
		if claims && !claimed && !h.wasReady(foo, began, s.from) {
			lies = append(lies, fmt.Sprintf("Foo %s reports Ready for generation %d at version %d, but since that generation began at version %d there was no Deployment %s as the Foo asks: %s",
				cache.MetaObjectToName(foo), foo.Generation, s.from, began, foo.Spec.DeploymentName, h.describe(foo, began, s.from)))
		}
		claimed = claimed || claims
	}
	return lies
}

// claimsReady reports whether a Foo's status says that its current generation is ready.
func claimsReady(foo *samplev1alpha1.Foo) bool {
	ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready")
	return ready != nil && ready.Status == metav1.ConditionTrue &&
		(ready.ObservedGeneration >= foo.Generation || foo.Status.ObservedGeneration >= foo.Generation)
}

// wasReady reports whether a Foo had the Deployment that it asks for, rolled out, at some
// moment between two versions.
func (h *History) wasReady(foo *samplev1alpha1.Foo, from, until uint64) bool {
	for _, s := range h.between(foo, from, until) {
		if isRolledOut(s.object, foo) {
			return true
		}
	}
	return false
}

// between returns the states of a Foo's Deployment between two versions, including the
// state at the first.
func (h *History) between(foo *samplev1alpha1.Foo, from, until uint64) []state[*appsv1.Deployment] {
	all := h.deployments[cache.ObjectName{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}]
	var between []state[*appsv1.Deployment]
	for i, s := range all {
		end := uint64(math.MaxUint64)
		if i+1 < len(all) {
			end = all[i+1].from
		}
		if !s.deleted && s.from <= until && end > from {
			between = append(between, s)
		}
	}
	return between
}

// isRolledOut reports whether a Foo controls a Deployment, and the Deployment is as the
// Foo asks and rolled out.
func isRolledOut(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	owner := metav1.GetControllerOf(deployment)
	if owner == nil || owner.UID != foo.UID {
		return false
	}
	size := int32(1)
	if deployment.Spec.Replicas != nil {
		size = *deployment.Spec.Replicas
	}
	if foo.Spec.Replicas != nil && *foo.Spec.Replicas != size || imageOf(deployment) != "nginx:latest" {
		return false
	}
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.Replicas == size && status.UpdatedReplicas == size && status.AvailableReplicas == size
}

func imageOf(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == "nginx" {
			return container.Image
		}
	}
	return ""
}

// describe describes the Deployment that a Foo asks for, and those that existed instead.
func (h *History) describe(foo *samplev1alpha1.Foo, from, until uint64) string {
	wanted := "any number of"
	if foo.Spec.Replicas != nil {
		wanted = strconv.Itoa(int(*foo.Spec.Replicas))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "wanted %s of nginx:latest for %s", wanted, foo.UID)
	for _, s := range h.between(foo, from, until) {
		size := int32(1)
		if s.object.Spec.Replicas != nil {
			size = *s.object.Spec.Replicas
		}
		owner := "none"
		if ref := metav1.GetControllerOf(s.object); ref != nil {
			owner = string(ref.UID)
		}
		status := s.object.Status
		fmt.Fprintf(&text, "; at version %d owner %s, %d of %s, generation %d (%d observed), %d Pods, %d updated, %d available",
			s.from, owner, size, imageOf(s.object), s.object.Generation, status.ObservedGeneration, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas)
	}
	return text.String()
}
