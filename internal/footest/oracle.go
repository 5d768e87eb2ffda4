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

// The oracle of the fuzz targets: what is right, without any code of the controller.

package footest

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These checks define what is right independently: they call no code of the controller.

// BelongsTo reports whether a Foo controls a Deployment.
func BelongsTo(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	for _, ref := range deployment.OwnerReferences {
		if ref.Controller != nil && *ref.Controller {
			return strings.HasPrefix(ref.APIVersion, "samplecontroller.k8s.io/") && ref.Kind == "Foo" && ref.UID == foo.UID
		}
	}
	return false
}

// HandedOverTo reports whether a Deployment has no controller and asks to be adopted by
// the Foo.
func HandedOverTo(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	for _, ref := range deployment.OwnerReferences {
		if ref.Controller != nil && *ref.Controller {
			return false
		}
	}
	return deployment.Annotations["samplecontroller.k8s.io/adopt-by"] == foo.Name && deployment.DeletionTimestamp == nil
}

// CheckOthersKept fails if a write to a Deployment changes a field that the Foo does not
// own.
func CheckOthersKept(t *testing.T, found, write *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	t.Helper()
	others := withoutOurs(found, foo)
	if HandedOverTo(found, foo) {
		delete(others.Annotations, "samplecontroller.k8s.io/adopt-by") // an adoption removes it
	}
	ExpectEqual(t, "what belongs to others", others, withoutOurs(write, foo))
	if had, has := ourContainer(found), ourContainer(write); had != nil && has != nil {
		had, has := had.DeepCopy(), has.DeepCopy()
		had.Image, has.Image = "", ""
		ExpectEqual(t, "what others have put into our container", had, has)
	}
}

// withoutOurs returns a copy of a Deployment without the fields that a Foo owns.
func withoutOurs(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	rest := deployment.DeepCopy()
	if foo.Spec.Replicas != nil {
		rest.Spec.Replicas = nil
	}
	delete(rest.Spec.Template.Labels, "app")
	delete(rest.Spec.Template.Labels, "controller")
	pod := &rest.Spec.Template.Spec
	for i, container := range pod.Containers {
		if container.Name == "nginx" {
			pod.Containers = append(pod.Containers[:i:i], pod.Containers[i+1:]...)
			break
		}
	}
	rest.OwnerReferences = slices.DeleteFunc(rest.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == foo.UID })
	return rest
}

func ourContainer(deployment *appsv1.Deployment) *corev1.Container {
	for i := range deployment.Spec.Template.Spec.Containers {
		if container := &deployment.Spec.Template.Spec.Containers[i]; container.Name == "nginx" {
			return container
		}
	}
	return nil
}

// CheckWanted fails if a Deployment that is to be written is not as a Foo asks for.
func CheckWanted(t *testing.T, write *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	t.Helper()
	if write.Name != foo.Spec.DeploymentName || write.Namespace != foo.Namespace {
		t.Errorf("the write is to Deployment %s/%s, which is not the one that the Foo asks for", write.Namespace, write.Name)
	}
	if !BelongsTo(write, foo) {
		t.Errorf("the written Deployment is not controlled by the Foo: %v", write.OwnerReferences)
	}
	if foo.Spec.Replicas != nil && (write.Spec.Replicas == nil || *write.Spec.Replicas != *foo.Spec.Replicas) {
		t.Error("the written Deployment does not have the Foo's number of replicas")
	}
	if container := ourContainer(write); container == nil || container.Image != "nginx:latest" {
		t.Errorf("the written Deployment does not have the Foo's container: %v", container)
	}
	owners := sets.New[types.UID]()
	for _, ref := range write.OwnerReferences {
		if owners.Has(ref.UID) {
			t.Errorf("the written Deployment has two references to the owner %s", ref.UID)
		}
		owners.Insert(ref.UID)
	}
	selector, err := metav1.LabelSelectorAsSelector(write.Spec.Selector)
	Must(t, err)
	if !selector.Matches(labels.Set(write.Spec.Template.Labels)) {
		t.Errorf("the API server would refuse this: the selector %s does not match the labels %v", selector, write.Spec.Template.Labels)
	}
}

// CheckStatus fails if the API server would refuse a calculated status, or if the status
// violates an invariant.
func CheckStatus(t *testing.T, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) {
	t.Helper()
	if status.ObservedGeneration != foo.Generation {
		t.Errorf("the status is of generation %d, the Foo of %d", status.ObservedGeneration, foo.Generation)
	}
	if status.Replicas < 0 || status.AvailableReplicas < 0 || len(status.Selector) > 4096 {
		t.Errorf("the status is out of the definition's bounds: %d, %d, a selector of %d bytes", status.Replicas, status.AvailableReplicas, len(status.Selector))
	}
	seen := map[string]int{}
	for _, condition := range status.Conditions {
		seen[condition.Type]++
		if seen[condition.Type] > 1 {
			t.Errorf("there are two conditions %s", condition.Type)
		}
		if length := utf8.RuneCountInString(condition.Message); length > 32768 {
			t.Errorf("the API server refuses a message of %d characters", length)
		}
		if !utf8.ValidString(condition.Message) {
			t.Errorf("the message is not valid UTF-8: %q", condition.Message)
		}
		if condition.LastTransitionTime.IsZero() {
			t.Errorf("the condition %s has no time", condition.Type)
		}
	}
	if seen["Ready"] != 1 {
		t.Fatalf("there is no condition Ready: %v", status.Conditions)
	}
	checkReady(t, foo, ReadyOf(status))
}

// ReadyOf returns the condition Ready of a status.
func ReadyOf(status samplev1alpha1.FooStatus) metav1.Condition {
	for _, condition := range status.Conditions {
		if condition.Type == "Ready" {
			return condition
		}
	}
	return metav1.Condition{}
}

func checkReady(t *testing.T, foo *samplev1alpha1.Foo, ready metav1.Condition) {
	t.Helper()
	if ready.ObservedGeneration != foo.Generation || ready.Message == "" {
		t.Errorf("the condition Ready is of generation %d with the message %q", ready.ObservedGeneration, ready.Message)
	}
	switch ready.Reason {
	case "Available":
		if ready.Status != metav1.ConditionTrue {
			t.Errorf("the reason is Available, but the status %s", ready.Status)
		}
	case "Progressing", "DeploymentConflict", "DeploymentFailed", "Terminating":
		if ready.Status != metav1.ConditionFalse {
			t.Errorf("the reason is %s, but the status %s", ready.Reason, ready.Status)
		}
	default:
		t.Errorf("the reason %q does not exist", ready.Reason)
	}
}
