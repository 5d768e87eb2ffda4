// SPDX-License-Identifier: Apache-2.0

// Tests of control by a Foo.

package plan

import (
	"testing"

	"example.com/sample-controller/test/footest"
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
