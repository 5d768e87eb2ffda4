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
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestTheCacheKeepsAllOfAFoosDeploymentButManagedFields(t *testing.T) {
	object := deployment("a", withSidecar)
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	trimmed, err := new(trimmer).trim(object)
	must(t, err)
	expectEqual(t, "the Deployment in the cache", deployment("a", withSidecar), trimmed)
}

func TestTheCacheKeepsWhatDecisionsReadOfOthersDeployments(t *testing.T) {
	for name, options := range map[string][]deploymentOption{
		"nobody's":                 {withoutOwner, terminating},
		"another kind's":           {withOwner("example.com/v1", "Foo", "uid-other")},
		"nobody's, carrying a lot": {withoutOwner, withSidecar},
		"nobody's, handed over":    {withoutOwner, withAdoptBy("a")},
	} {
		t.Run(name, func(t *testing.T) {
			object := deployment("a", options...)
			trimmed, err := new(trimmer).trim(deployment("a", options...))
			must(t, err)
			kept := trimmed.(metav1.Object)
			adoptBy := kept.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
			if adoptBy != object.Annotations[samplev1alpha1.AnnotationAdoptBy] {
				t.Error("the cache lost the annotation that hands a Deployment over")
			}
			if len(kept.GetAnnotations()) > 1 || kept.GetAnnotations()["team"] != "" || kept.GetLabels() != nil {
				t.Error("the cache keeps what nothing reads")
			}
			expectEqual(t, "the name", keyOf(object), keyOf(kept))
			if kept.GetResourceVersion() != object.ResourceVersion || kept.GetUID() != object.UID {
				t.Error("the cache lost the version or the UID")
			}
			expectEqual(t, "the owners", object.OwnerReferences, kept.GetOwnerReferences())
			expectEqual(t, "the deletion timestamp", object.DeletionTimestamp, kept.GetDeletionTimestamp())
		})
	}
}

func TestAFoosDeploymentsShareWhatIsAlikeAndNothingElse(t *testing.T) {
	trimmer := new(trimmer)
	kept := func(options ...deploymentOption) *appsv1.Deployment {
		trimmed, err := trimmer.trim(deployment("a", options...))
		must(t, err)
		expectEqual(t, "the Deployment in the cache", deployment("a", options...), trimmed)
		return trimmed.(*appsv1.Deployment)
	}
	first, second, other := kept(), kept(), kept(withSidecar)
	containers := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	if containers(first) != containers(second) {
		t.Error("two Deployments that are alike have memory of their own for their containers")
	}
	if containers(second) == containers(other) {
		t.Error("two Deployments that differ in their containers share them")
	}
}

func TestTheTrimmerLeavesTombstonesAlone(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "team-a/web"}
	trimmed, err := new(trimmer).trim(tombstone)
	must(t, err)
	expectEqual(t, "the tombstone", tombstone, trimmed)
}
