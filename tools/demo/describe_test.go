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

// Tests of descriptions.

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestDescribe(t *testing.T) {
	tests := map[string]struct {
		before, after metav1.Object
		did, note     string
	}{
		"a Foo is created":                    {nil, foo(3), "created", "3 replicas"},
		"a Foo without replicas is created":   {nil, foo(0, func(f *samplev1alpha1.Foo) { f.Spec.Replicas = nil }), "created", ""},
		"a Deployment is created for a Foo":   {nil, ownedBy("Foo", deployment(1)), "created", "owner Foo, 1 replica"},
		"a Deployment is created for nobody":  {nil, deployment(2), "created", "2 replicas"},
		"a Pod is created":                    {nil, ownedBy("ReplicaSet", pod()), "created", "owner ReplicaSet"},
		"a Foo is deleted at once":            {foo(1), nil, "deleted", ""},
		"a Pod is deleted, with time to end":  {pod(), doomed(pod(), 30), "deleted", "has 30 s to end"},
		"a Foo is deleted, with a finalizer":  {foo(1), doomed(foo(1), 0, "foregroundDeletion"), "deleted", "waits for foregroundDeletion"},
		"a Pod that was deleted has ended":    {doomed(pod(), 30), nil, "removed", ""},
		"a Pod is bound":                      {pod(), pod(func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }), "bound", "to node-1"},
		"a Pod becomes Ready":                 {pod(), pod(withPodReady(corev1.ConditionTrue)), "reported", "Ready"},
		"a Pod is Ready no more":              {pod(withPodReady(corev1.ConditionTrue)), pod(withPodReady(corev1.ConditionFalse)), "reported", "not Ready"},
		"a Pod has not become Ready":          {pod(), pod(withPodReady(corev1.ConditionFalse)), "", ""},
		"a Pod has failed":                    {pod(), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "reported", "Failed"},
		"a Foo is scaled":                     {foo(1), foo(3), "scaled", "replicas 1 -> 3"},
		"a Foo leaves its replicas to others": {foo(1), foo(0, func(f *samplev1alpha1.Foo) { f.Spec.Replicas = nil }), "scaled", "replicas 1 -> unset"},
		"a Foo names another Deployment":      {foo(1), foo(1, func(f *samplev1alpha1.Foo) { f.Spec.DeploymentName = "b" }), "changed", "deploymentName web -> b"},
		"a ReplicaSet is scaled":              {replicaSet(1), replicaSet(0), "scaled", "replicas 1 -> 0"},
		"a Deployment gets another image and is scaled": {deployment(1), deployment(2, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "nginx:1"
		}), "changed", "image nginx:latest -> nginx:1, replicas 1 -> 2"},
		"something else of a Deployment's spec changes": {deployment(1), deployment(1, func(d *appsv1.Deployment) { d.Spec.Paused = true }), "changed", "spec"},
		"labels and annotations change":                 {foo(1), annotated("a", foo(1, func(f *samplev1alpha1.Foo) { f.Labels = map[string]string{"a": "b"} })), "changed", "labels, annotations"},
		"kubectl's own annotation changes":              {foo(1), annotated(corev1.LastAppliedConfigAnnotation, foo(1)), "", ""},
		"the deployment controller's own annotation":    {deployment(1), annotated("deployment.kubernetes.io/revision", deployment(1)), "", ""},
		"a ReplicaSet is orphaned":                      {ownedBy("Deployment", replicaSet(1)), replicaSet(1), "changed", "owners"},
		"a Deployment reports an available Pod":         {deployment(2), deployment(2, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }), "reported", "1/2 available"},
		"a Deployment counts something else":            {deployment(2), deployment(2, func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = 1 }), "", ""},
		"a Foo reports progress":                        {foo(2), foo(2, withReady("False", "Progressing", "m")), "reported", "0/2 available, Progressing"},
		"a Foo reports to be ready":                     {foo(0), foo(0, withReady("True", "Available", "m")), "reported", "0/0 available, Ready"},
		"a Foo reports what the user has to do":         {foo(1), foo(1, withReady("False", "DeploymentConflict", "do this")), "reported", "0/1 available, DeploymentConflict: do this"},
		"a Foo's condition changes its message only":    {foo(1, withReady("False", "Progressing", "a")), foo(1, withReady("False", "Progressing", "b")), "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if did, note := describe(change{before: test.before, after: test.after}); did != test.did || note != test.note {
				t.Errorf("got %q, %q; want %q, %q", did, note, test.did, test.note)
			}
		})
	}
}
