// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/audit"
)

func TestResourcesThatTheControllerMayCreate(t *testing.T) {
	got, err := createdBy(strings.NewReader(`
kind: ClusterRole
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, create]}
- {apiGroups: [samplecontroller.k8s.io], resources: [foos], verbs: [get]}
---
kind: ClusterRole
rules:
- {apiGroups: [""], resources: [events, services], verbs: [create]}
`))
	if want := []string{"deployments.apps", "services"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := createdBy(strings.NewReader("rules: 1")); err == nil {
		t.Error("rules that are a number are no error")
	}
}

func TestOnlyWritesOfInterestArePrinted(t *testing.T) {
	by := func(user string, body audit.Body, w audit.Write) audit.Write {
		w.User, w.Body = user, &body
		return w
	}
	const service = `{"spec":{}}`
	owned := audit.Body{Owners: []audit.Owner{{Kind: "Foo", Name: "web"}}}
	for name, test := range map[string]struct {
		write audit.Write
		want  string
	}{
		"a child":                             {by("somebody", owned, write("create services", service)), "Service"},
		"an object of the person who watches": {by("admin", audit.Body{}, write("create services", service)), "Service"},
		"an object that nobody owns":          {by("somebody", audit.Body{}, write("create services", service)), ""},
		"a kind that is not narrated":         {by("admin", owned, write("create secrets", service)), ""},
	} {
		n := narrator{self: "admin", resources: narrated}
		var got string
		for _, l := range n.narrate([]audit.Write{test.write}, due) {
			got += l.kind
		}
		if got != test.want {
			t.Errorf("%s: printed %q, want %q", name, got, test.want)
		}
	}
}
