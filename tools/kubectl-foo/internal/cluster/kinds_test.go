// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/pkg/reconcile/plan"
)

func TestAnArgumentMeansAnObjectOfAKind(t *testing.T) {
	first := kinds.Declared(kinds.Options{})[0]
	second := &plan.Kind{Name: "Redirect", Resource: first.Resource.GroupVersion().WithResource("redirects")}
	kinds := Kinds{first, second}
	for argument, want := range map[string]*plan.Kind{
		"a": first, first.Name + "/a": first, "redirect/a": second, "Redirect/a": second, "redirects/a": second, "pod/a": nil, "/a": nil,
	} {
		kind, name, err := kinds.Parse(argument)
		if kind != want || (err == nil) != (want != nil) || want != nil && name != "a" {
			t.Errorf("%q means %+v %q: %v", argument, kind, name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "redirect") {
			t.Errorf("%q: the error does not name the kinds: %v", argument, err)
		}
	}
	for _, kind := range kinds {
		if back, name, err := kinds.Parse(kinds.Argument(kind, "a")); back != kind || name != "a" || err != nil {
			t.Errorf("%s: its argument means %+v %q: %v", kind.Name, back, name, err)
		}
	}
}
