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

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Lines as kube-apiserver writes them, shortened by what is not read.
const (
	createFooLine = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",` +
		`"requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos?fieldManager=kubectl-client-side-apply\u0026fieldValidation=Strict",` +
		`"verb":"create","user":{"username":"devcluster-admin","groups":["system:masters"]},"userAgent":"kubectl/v1.37.0 (linux/amd64) kubernetes/unknown",` +
		`"objectRef":{"resource":"foos","namespace":"default","name":"example-foo","apiGroup":"samplecontroller.k8s.io","apiVersion":"v1alpha1"},` +
		`"responseStatus":{"metadata":{},"code":201},"stageTimestamp":"2026-11-21T11:23:15.506749Z"}` + "\n"
	updateStatusLine = `{"stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/default/replicasets/web-1/status","verb":"update",` +
		`"user":{"username":"system:serviceaccount:kube-system:replicaset-controller"},"userAgent":"kube-controller-manager/v1.37.0 (linux/amd64)",` +
		`"objectRef":{"resource":"replicasets","namespace":"default","name":"web-1","resourceVersion":"291","subresource":"status"},` +
		`"responseStatus":{"code":200},"stageTimestamp":"2026-11-21T11:23:15.751945Z"}` + "\n"
)

var createFooRecord = record{
	verb: "create", resource: "foos", namespace: "default", name: "example-foo", user: "devcluster-admin",
	manager: "kubectl-client-side-apply", done: time.Date(2026, 11, 21, 11, 23, 15, 506749000, time.UTC),
}

func TestParseRecord(t *testing.T) {
	tests := map[string]struct {
		line    string
		want    record
		changed bool
	}{
		"a create, with the field manager that the client chose": {createFooLine, createFooRecord, true},
		"an update of a subresource, with the version that it replaces": {updateStatusLine, record{
			verb: "update", resource: "replicasets", subresource: "status", namespace: "default", name: "web-1", replaces: "291",
			user: "system:serviceaccount:kube-system:replicaset-controller", manager: "kube-controller-manager",
			done: time.Date(2026, 11, 21, 11, 23, 15, 751945000, time.UTC),
		}, true},
		"a conflict":         {`{"stage":"ResponseComplete","requestURI":"/a","verb":"update","responseStatus":{"code":409}}`, record{}, false},
		"a dry run":          {`{"stage":"ResponseComplete","requestURI":"/a?dryRun=All","verb":"update","responseStatus":{"code":200}}`, record{}, false},
		"not yet answered":   {`{"stage":"RequestReceived","requestURI":"/a","verb":"update"}`, record{}, false},
		"a panicked handler": {`{"stage":"Panic","requestURI":"/a","verb":"update","responseStatus":{"code":500}}`, record{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed, err := parseRecord([]byte(test.line))
			if err != nil || changed != test.changed || got != test.want {
				t.Errorf("got %+v, %v, %v; want %+v, %v", got, changed, err, test.want, test.changed)
			}
		})
	}
	if _, _, err := parseRecord([]byte("{")); err == nil {
		t.Error("no error for a line that is no JSON")
	}
}

func TestAuditLogGivesEachLineOnceItIsWhole(t *testing.T) {
	log := auditLog{path: filepath.Join(t.TempDir(), "audit.log")}
	half := len(updateStatusLine) / 2
	for _, step := range []struct {
		say     string
		content string
		want    int
	}{
		{"one line and a half", createFooLine + updateStatusLine[:half], 1},
		{"nothing more", createFooLine + updateStatusLine[:half], 0},
		{"the other half", createFooLine + updateStatusLine, 1},
		{"a new, shorter file after rotation", createFooLine, 1},
	} {
		if err := os.WriteFile(log.path, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		records, err := log.next()
		if err != nil || len(records) != step.want {
			t.Fatalf("%s: %d records, %v; want %d", step.say, len(records), err, step.want)
		}
	}
}

func TestActorOf(t *testing.T) {
	tests := map[record]string{
		{user: "admin", manager: "kubectl-scale"}:                               "you",
		{user: "admin", manager: "e2e.test"}:                                    "you (e2e.test)",
		{user: "system:serviceaccount:kube-system:deployment-controller"}:       "deployment-controller",
		{user: "system:serviceaccount:kube-system:generic-garbage-collector"}:   "garbage-collector",
		{user: "system:serviceaccount:sample-controller:sample-controller"}:     "sample-controller",
		{user: "system:kube-scheduler", manager: "kube-scheduler"}:              "kube-scheduler",
		{user: "kwok", manager: "kwok"}:                                         "kwok (as kubelet)",
		{user: "system:serviceaccount:kube-system:kubectl", manager: "kubectl"}: "kubectl",
	}
	for r, want := range tests {
		if got := actorOf(r, "admin"); got != want {
			t.Errorf("%+v: got %q, want %q", r, got, want)
		}
	}
}
