// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for writes.

package oracle

import (
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

func TestWrongWrite(t *testing.T) {
	old, child, unowned := footest.Child("a", footest.Named("old")), footest.Child("a"), footest.Child("a", footest.WithoutOwner)
	handedOver := footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))
	serves := "while it serves"
	if !footest.Primary.Serves(old) {
		serves = ""
	}
	for what, tt := range map[string]struct {
		foo, stored, next, known footest.Object
		says                     string
	}{
		"a creation":                          {settled(), nil, child, nil, ""},
		"a creation without an owner":         {settled(), nil, unowned, nil, "without a controller reference to a Foo"},
		"the creation of a Foo":               {settled(), nil, settled(), nil, "belongs to users"},
		"the deletion of a Foo":               {settled(), settled(), nil, nil, "belongs to users"},
		"an update of a Foo":                  {settled(), settled(), settled(), nil, ""},
		"an update that keeps the owner":      {settled(), child, footest.Child("a", footest.WithTeam), nil, ""},
		"the owner is suspended":              {settled(footest.Suspended), child, child, nil, "is suspended"},
		"the owner is gone":                   {settled(footest.WithFooUID("uid-new")), child, child, nil, "no living owner"},
		"an adoption of what is handed over":  {settled(), handedOver, child, nil, ""},
		"it is handed over to another":        {settled(), handedOver, footest.Child("b"), nil, "nobody has handed it over to b"},
		"nobody has handed it over":           {settled(), unowned, child, nil, "nobody has handed it over to a"},
		"it belongs to another":               {settled(), footest.Child("b"), child, nil, "takes it from b"},
		"it loses its owner":                  {settled(), child, unowned, nil, "without an owner"},
		"the successor is ready":              {settled(), old, nil, child, ""},
		"the successor differs":               {settled(), old, nil, footest.Child("a", footest.Drifted), serves},
		"the successor is not there":          {settled(), old, nil, nil, "is not seen to have web"},
		"the successor is nobody's":           {settled(), old, nil, unowned, "is not seen to have web"},
		"the deleted one is asked for":        {settled(), child, nil, child, "Foo a asks for it"},
		"the deleted one is nobody's":         {settled(), unowned, nil, nil, "no living owner"},
		"its owner has another UID":           {settled(footest.WithFooUID("uid-new")), old, nil, child, "no living owner"},
		"nothing is to be done for the owner": {settled(footest.Suspended), old, nil, child, "is suspended"},
	} {
		w := World{Owner: footest.FooOwner, Objects: []footest.Object{tt.foo}}
		wrong := w.WrongWrite(tt.stored, tt.next, func(string) footest.Object { return tt.known })
		if tt.says == "" && wrong != "" || !strings.Contains(wrong, tt.says) {
			t.Errorf("%s: it says %q, want %q", what, wrong, tt.says)
		}
	}
}
