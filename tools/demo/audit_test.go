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

// Tests of reading the audit log.

package main

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/sample-controller/internal/audit"
)

// Lines of the audit log, shortened by what is not read.
const (
	createFooLine = `{"stage":"ResponseComplete","requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos",` +
		`"verb":"create","user":{"username":"devcluster-admin"},"userAgent":"kubectl/v1","objectRef":{"resource":"foos","namespace":"default","name":"example-foo"},` +
		`"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.506749Z"}` + "\n"
	conflictLine = `{"stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/default/replicasets/web-1/status","verb":"update",` +
		`"objectRef":{"resource":"replicasets","namespace":"default","name":"web-1","subresource":"status"},` +
		`"responseStatus":{"code":409},"stageTimestamp":"2026-11-21T11:23:15.751945Z"}` + "\n"
)

func TestWhatTheServerRefusedIsLeftOut(t *testing.T) {
	log := audit.Log{Path: filepath.Join(t.TempDir(), "audit.log")}
	if err := os.WriteFile(log.Path, []byte(conflictLine+createFooLine), 0o600); err != nil {
		t.Fatal(err)
	}
	if writes, err := nextWrites(&log); err != nil || len(writes) != 1 || writes[0].Code != 201 {
		t.Errorf("got %+v, %v; want the creation alone", writes, err)
	}
}

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
