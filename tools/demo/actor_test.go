// SPDX-License-Identifier: Apache-2.0

// Tests of the names of actors.

package main

import (
	"testing"

	"example.com/sample-controller/internal/audit"
)

func TestActorOf(t *testing.T) {
	tests := map[audit.Write]string{
		{User: "admin", Manager: "kubectl-scale"}:                               "you",
		{User: "admin", Manager: "e2e.test"}:                                    "you (e2e.test)",
		{User: "system:serviceaccount:kube-system:deployment-controller"}:       "deployment-controller",
		{User: "system:serviceaccount:kube-system:generic-garbage-collector"}:   "garbage-collector",
		{User: "system:serviceaccount:sample-controller:sample-controller"}:     "sample-controller",
		{User: "system:kube-scheduler", Manager: "kube-scheduler"}:              "kube-scheduler",
		{User: "kwok", Manager: "kwok"}:                                         "kwok (as kubelet)",
		{User: "system:serviceaccount:kube-system:kubectl", Manager: "kubectl"}: "kubectl",
	}
	for r, want := range tests {
		if got := actorOf(r, "admin"); got != want {
			t.Errorf("%+v: got %q, want %q", r, got, want)
		}
	}
}
