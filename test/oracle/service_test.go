// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/test/footest"
)

func TestAFooThatWasReadyStaysInService(t *testing.T) {
	foo := func(h *History, version string, deleted bool, options ...footest.FooOption) {
		foo := footest.Foo("a", options...)
		foo.ResourceVersion = version
		h.Add(foo, deleted)
	}
	settled := footest.WithStatus(footest.Settled("a"))
	ready := func(h *History) { foo(h, "2", false, settled) }
	child := func(h *History, name, version string, available int32, deleted bool) {
		h.Add(footest.Deployment("a", footest.Named(name), footest.WithAvailable(available), footest.AtVersion(version)), deleted)
	}
	for what, row := range map[string]struct {
		record func(h *History)
		want   []string
	}{
		"never ready": {func(h *History) { foo(h, "2", false) }, nil},
		"one after the other": {func(h *History) {
			child(h, "one", "1", 1, false)
			ready(h)
			child(h, "two", "3", 0, false)
			child(h, "two", "4", 1, false)
			child(h, "one", "5", 1, true)
		}, nil},
		"a gap": {func(h *History) {
			child(h, "one", "1", 1, false)
			ready(h)
			child(h, "one", "3", 1, true)
			child(h, "two", "4", 1, false)
		}, []string{`Foo team-a/a had nothing in service from version 3, when "one" ended, until version 4`}},
		"nothing in the end": {func(h *History) {
			child(h, "one", "1", 1, false)
			ready(h)
			child(h, "one", "3", 0, false)
		}, []string{"Foo team-a/a has nothing in service from version 3 on"}},
		"deleted": {func(h *History) {
			child(h, "one", "1", 1, false)
			ready(h)
			foo(h, "3", true, settled)
			child(h, "one", "4", 1, true)
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			h := &History{}
			row.record(h)
			var found []string
			for states := range h.ofFoos(math.MaxUint64) {
				found = append(found, h.interruptionsOf(states, func(child footest.Object) bool {
					return child.(*appsv1.Deployment).Status.AvailableReplicas > 0
				})...)
			}
			if !slices.Equal(found, row.want) {
				t.Errorf("found %q, want %q", found, row.want)
			}
		})
	}
}
