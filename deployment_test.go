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

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNewDeploymentIsUpstreams(t *testing.T) {
	expectEqual(t, "the Deployment", created("a"), shipped.newDeployment(foo("a")))
}

func TestNewDeploymentSharesNothingWithItsFoo(t *testing.T) {
	source := foo("a")
	*shipped.newDeployment(source).Spec.Replicas = 9
	expectEqual(t, "the Foo", foo("a"), source)
}

func TestRepairedDeployment(t *testing.T) {
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		found *appsv1.Deployment
		want  *appsv1.Deployment // nil: nothing to repair
	}{
		"as wanted":                              {foo("a"), deployment("a"), nil},
		"changed by others in what is theirs":    {foo("a"), deployment("a", withSidecar), nil},
		"other labels in the template":           {foo("a"), deployment("a", withTemplateLabel("zone", "1")), nil},
		"replicas":                               {foo("a", withReplicas(5)), deployment("a", withSidecar), deployment("a", withSidecar, scaledTo(5))},
		"replicas that the Foo leaves to others": {foo("a", withoutReplicas), deployment("a", scaledTo(7)), nil},
		"the image":                              {foo("a"), deployment("a", withImage("nginx:1"), withSidecar), deployment("a", withSidecar)},
		"a label of the template":                {foo("a"), deployment("a", withTemplateLabel("app", "apache")), deployment("a")},
		"all labels of the template":             {foo("a"), deployment("a", func(found *appsv1.Deployment) { found.Spec.Template.Labels = nil }), deployment("a")},
		"a selector of others' making, as wanted": {
			foo("a"), deployment("a", withSelected("app", "byhand"), withSelected("controller", "b")), nil,
		},
		"labels that a selector of others' making asks for": {
			foo("a"),
			deployment("a", withSelected("app", "byhand"), withTemplateLabel("app", "nginx")),
			deployment("a", withSelected("app", "byhand")),
		},
		"the container is gone": {
			foo("a"),
			deployment("a", func(found *appsv1.Deployment) {
				found.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "envoy:1"}}
			}),
			deployment("a", func(want *appsv1.Deployment) {
				want.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "envoy:1"}, {Name: "nginx", Image: "nginx:latest"}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := row.found.DeepCopy()
			if drifted := shipped.hasDrifted(row.found, row.foo); drifted != (row.want != nil) {
				t.Errorf("drifted = %v, not %v", drifted, row.want != nil)
			}
			repaired := shipped.repairedDeployment(row.found, row.foo)
			want := row.want
			if want == nil {
				want = before
			}
			expectEqual(t, "the repaired Deployment", want, repaired)
			expectEqual(t, "the Deployment that was found", before, row.found)
		})
	}
}

func TestAdoptedDeploymentFitsItsSelector(t *testing.T) {
	byHand := deployment("a", withoutOwner, withAdoptBy("a"), func(deployment *appsv1.Deployment) {
		deployment.Spec.Selector.MatchLabels = map[string]string{"app": "byhand"}
		deployment.Spec.Template.Labels = map[string]string{"app": "byhand"}
	})
	adopted := shipped.adoptedDeployment(byHand, foo("a"))
	expectEqual(t, "the labels of the Pods", map[string]string{"app": "byhand", "controller": "a"}, adopted.Spec.Template.Labels)
	if !isControlledBy(adopted, foo("a")) {
		t.Error("the Foo does not control what it adopted")
	}
}

// withSelected is a Deployment whose selector asks for this label, and whose
// Pods have it.
func withSelected(key, value string) deploymentOption {
	return func(deployment *appsv1.Deployment) {
		deployment.Spec.Selector.MatchLabels[key] = value
		deployment.Spec.Template.Labels[key] = value
	}
}
