// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
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
