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
)

func TestIsControlledBy(t *testing.T) {
	for name, row := range map[string]struct {
		deployment *appsv1.Deployment
		want       bool
	}{
		"by this Foo": {deployment("a"), true},
		"by this Foo, written with another version": {deployment("a", withOwner("samplecontroller.k8s.io/v1", "Foo", "uid-a")), true},
		"by nobody":                             {deployment("a", withoutOwner), false},
		"by another Foo":                        {deployment("b"), false},
		"by an earlier Foo of the same name":    {deployment("a", withOwner("samplecontroller.k8s.io/v1alpha1", "Foo", "uid-before")), false},
		"by a Foo of another API group":         {deployment("a", withOwner("example.com/v1alpha1", "Foo", "uid-a")), false},
		"by another kind of the same group":     {deployment("a", withOwner("samplecontroller.k8s.io/v1alpha1", "Bar", "uid-a")), false},
		"by an owner whose version is nonsense": {deployment("a", withOwner("a/b/c", "Foo", "uid-a")), false},
		"by an owner that is not its controller": {deployment("a", func(deployment *appsv1.Deployment) {
			deployment.OwnerReferences[0].Controller = nil
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isControlledBy(row.deployment, foo("a")); got != row.want {
				t.Errorf("isControlledBy = %v, not %v", got, row.want)
			}
		})
	}
}
