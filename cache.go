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
	"maps"
	"reflect"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// A trimmer drops, before an object enters an informer's cache, what no decision
// reads, and has Deployments share what they have in common. The caches hold
// every Deployment of the cluster, so this is most of the controller's memory.
type trimmer struct {
	// last is what the latest of the Foos' Deployments asks for.
	last atomic.Pointer[appsv1.DeploymentSpec]
}

// trim is a cache.TransformFunc.
//
// A Deployment that a Foo controls keeps all but its managedFields, for it is
// sent back in an update; the API server reads missing managedFields as
// unchanged. Any other keeps its metadata alone and is never sent back.
func (t *trimmer) trim(object any) (any, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if ok && controllingFoo(deployment) == nil {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name:              deployment.Name,
			Namespace:         deployment.Namespace,
			UID:               deployment.UID,
			ResourceVersion:   deployment.ResourceVersion,
			Generation:        deployment.Generation,
			OwnerReferences:   deployment.OwnerReferences,
			DeletionTimestamp: deployment.DeletionTimestamp,
			Annotations:       adoptionOf(deployment),
		}}, nil
	}
	if ok {
		t.share(&deployment.Spec)
	}
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// share has a Deployment use the memory of the one before for what is the same
// in both: nearly all but names, 1.2 KiB of 3. What a cache holds is never
// written to, so that nobody can tell.
func (t *trimmer) share(spec *appsv1.DeploymentSpec) {
	if spec.Selector != nil && maps.Equal(spec.Template.Labels, spec.Selector.MatchLabels) {
		spec.Template.Labels = spec.Selector.MatchLabels
	}
	last := t.last.Swap(spec)
	if last == nil {
		return
	}
	if reflect.DeepEqual(last.Template.Spec, spec.Template.Spec) {
		spec.Template.Spec = last.Template.Spec
	}
	if reflect.DeepEqual(last.Strategy, spec.Strategy) {
		spec.Strategy = last.Strategy
	}
}

// adoptionOf returns the one annotation of another's Deployment that a
// decision reads, if it is there.
func adoptionOf(deployment *appsv1.Deployment) map[string]string {
	if by, ok := deployment.Annotations[samplev1alpha1.AnnotationAdoptBy]; ok {
		return map[string]string{samplev1alpha1.AnnotationAdoptBy: by}
	}
	return nil
}
