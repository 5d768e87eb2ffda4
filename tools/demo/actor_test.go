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
