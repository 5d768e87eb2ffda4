// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for writes.

package oracle

import (
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

func TestWrongDelete(t *testing.T) {
	old := footest.Child("a", footest.Named("old"))
	serves := "while it serves"
	if !footest.Primary.Serves(old) {
		serves = ""
	}
	for what, tt := range map[string]struct {
		foo, child, known footest.Object
		says              string
	}{
		"the successor is ready":              {settled(), old, footest.Child("a"), ""},
		"the successor differs":               {settled(), old, footest.Child("a", footest.Drifted), serves},
		"the successor is not there":          {settled(), old, nil, "is not seen to have web"},
		"the successor is nobody's":           {settled(), old, footest.Child("a", footest.WithoutOwner), "is not seen to have web"},
		"it is the one that is asked for":     {settled(), footest.Child("a"), footest.Child("a"), "Foo a asks for it"},
		"it is nobody's":                      {settled(), footest.Child("a", footest.WithoutOwner), nil, "no living owner"},
		"its owner has another UID":           {settled(footest.WithFooUID("uid-new")), old, footest.Child("a"), "no living owner"},
		"nothing is to be done for its owner": {settled(footest.Suspended), old, footest.Child("a"), "is suspended"},
	} {
		w := World{Owner: footest.FooOwner, Objects: []footest.Object{tt.foo, tt.child}}
		wrong := w.WrongDelete(tt.child, func(string) footest.Object { return tt.known })
		if tt.says == "" && wrong != "" || !strings.Contains(wrong, tt.says) {
			t.Errorf("%s: it says %q, want %q", what, wrong, tt.says)
		}
	}
}

func TestWrongOwner(t *testing.T) {
	of := func(owner string, options ...footest.ChildOption) footest.Object {
		return footest.Child(owner, options...)
	}
	handedOver := of("a", footest.WithoutOwner, footest.WithAdoptBy("a"))
	for what, tt := range map[string]struct {
		before, after footest.Object
		says          string
	}{
		"it keeps its owner":    {of("a"), of("a", footest.WithTeam), ""},
		"it was handed over":    {handedOver, of("a"), ""},
		"to another":            {handedOver, of("b"), "nobody has handed it over to b"},
		"nobody has":            {of("a", footest.WithoutOwner), of("a"), "nobody has handed it over to a"},
		"it belongs to another": {of("b"), of("a"), "takes it from b"},
		"it loses its owner":    {of("a"), of("a", footest.WithoutOwner), "without an owner"},
	} {
		if wrong := WrongOwner(tt.before, tt.after); tt.says == "" && wrong != "" || !strings.Contains(wrong, tt.says) {
			t.Errorf("%s: it says %q, want %q", what, wrong, tt.says)
		}
	}
}
