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

// Tests of control by a Foo.

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/footest"
)

func TestIsControlledBy(t *testing.T) {
	for name, row := range map[string]struct {
		deployment *appsv1.Deployment
		want       bool
	}{
		"by this Foo": {footest.Deployment("a"), true},
		"by this Foo, written with another version": {footest.Deployment("a", footest.WithOwner("samplecontroller.k8s.io/v1", "Foo", "uid-a")), true},
		"by nobody":                           {footest.Deployment("a", footest.WithoutOwner), false},
		"by another Foo":                      {footest.Deployment("b"), false},
		"by a deleted Foo of the same name":   {footest.Deployment("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Foo", "uid-before")), false},
		"by a Foo of another API group":       {footest.Deployment("a", footest.WithOwner("example.com/v1alpha1", "Foo", "uid-a")), false},
		"by another kind of the same group":   {footest.Deployment("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Bar", "uid-a")), false},
		"by an owner with an invalid version": {footest.Deployment("a", footest.WithOwner("a/b/c", "Foo", "uid-a")), false},
		"by an owner that is not its controller": {footest.Deployment("a", func(deployment *appsv1.Deployment) {
			deployment.OwnerReferences[0].Controller = nil
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsControlledBy(row.deployment, footest.Foo("a")); got != row.want {
				t.Errorf("isControlledBy = %v, not %v", got, row.want)
			}
		})
	}
}
