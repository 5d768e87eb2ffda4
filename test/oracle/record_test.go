// SPDX-License-Identifier: Apache-2.0

// Tests of when a recording has caught up with a list.

package oracle

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func fooAt(uid types.UID, version string) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: uid, ResourceVersion: version}}
}

func TestARecordingCatchesUpWithAList(t *testing.T) {
	for _, row := range []struct {
		what   string
		record func(r *Recording)
		has    bool
	}{
		{"the list's state", func(r *Recording) { r.record(fooAt("a", "5"), false) }, true},
		{"a newer state", func(r *Recording) { r.record(fooAt("a", "6"), false) }, true},
		{"an older state", func(r *Recording) { r.record(fooAt("a", "4"), false) }, false},
		{"nothing", func(*Recording) {}, false},
		{"another Foo that is not in the list", func(r *Recording) {
			r.record(fooAt("a", "5"), false)
			r.record(fooAt("b", "6"), false)
		}, false},
		{"another Foo and its deletion", func(r *Recording) {
			r.record(fooAt("a", "5"), false)
			r.record(fooAt("b", "6"), false)
			r.record(fooAt("b", "7"), true)
		}, true},
		{"another Foo that is newer than the list", func(r *Recording) {
			r.record(fooAt("a", "5"), false)
			r.record(fooAt("b", "9"), false)
		}, true},
		{"another child", func(r *Recording) {
			r.record(fooAt("a", "5"), false)
			r.record(footest.Child("a", footest.AtVersion("5")), false)
		}, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := &Recording{seen: map[types.UID]seen{}}
			row.record(r)
			list := &samplev1alpha1.FooList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []samplev1alpha1.Foo{*fooAt("a", "5")}}
			if has, err := r.has(list, footest.FooKind); has != row.has || err != nil {
				t.Errorf("The record has caught up: %v (%v), want %v", has, err, row.has)
			}
			r.breakOff(errors.New("a gap"))
			if _, err := r.has(list, footest.FooKind); err == nil {
				t.Error("A record with a gap returned no error")
			}
		})
	}
}
