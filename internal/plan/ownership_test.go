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

	"example.com/sample-controller/internal/footest"
)

func TestIsControlledBy(t *testing.T) {
	for name, row := range map[string]struct {
		child primary
		want  bool
	}{
		"by this Foo": {child("a"), true},
		"by this Foo, written with another version": {child("a", footest.WithOwner("samplecontroller.k8s.io/v1", "Foo", "uid-a")), true},
		"by nobody":                           {child("a", footest.WithoutOwner), false},
		"by another Foo":                      {child("b"), false},
		"by a deleted Foo of the same name":   {child("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Foo", "uid-before")), false},
		"by a Foo of another API group":       {child("a", footest.WithOwner("example.com/v1alpha1", "Foo", "uid-a")), false},
		"by another kind of the same group":   {child("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Bar", "uid-a")), false},
		"by an owner with an invalid version": {child("a", footest.WithOwner("a/b/c", "Foo", "uid-a")), false},
		"by an owner that is not its controller": {child("a", func(child footest.Object) {
			owners := child.GetOwnerReferences()
			owners[0].Controller = nil
			child.SetOwnerReferences(owners)
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsControlledBy(row.child, footest.Foo("a")); got != row.want {
				t.Errorf("isControlledBy = %v, not %v", got, row.want)
			}
		})
	}
}
