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
	"strings"
	"testing"
)

const log = `{"stage":"ResponseComplete","requestURI":"/apis","verb":"create","user":{"username":"devcluster-admin"},"userAgent":"kubectl/v1.37.0 (linux/amd64)","objectRef":{"resource":"foos","namespace":"default","name":"web"},"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T23:36:06.214000Z"}
{"stage":"ResponseComplete","requestURI":"/apis","verb":"update","user":{"username":"system:kube-scheduler"},"userAgent":"kube-scheduler/v1.37.0","objectRef":{"resource":"leases","namespace":"default","name":"kube-scheduler"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-21T23:36:06.215000Z"}
{"stage":"ResponseComplete","requestURI":"/apis","verb":"update","user":{"username":"system:serviceaccount:kube-system:deployment-controller"},"userAgent":"kube-controller-manager/v1.37.0","objectRef":{"resource":"deployments","subresource":"status","namespace":"default","name":"web"},"responseStatus":{"code":409},"stageTimestamp":"2026-11-21T23:36:06.216000Z"}
{"stage":"ResponseComplete","requestURI":"/apis","verb":"create","user":{"username":"system:serviceaccount:kube-system:replicaset-controller"},"userAgent":"kube-controller-manager/v1.37.0","objectRef":{"resource":"pods","namespace":"other"},"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T23:36:06.217000Z"}
{"stage":"ResponseComplete","requestURI":"/apis","verb":"create","user"`

const (
	webCreated = "23:36:06.214  kubectl                    create  201  foos                 web\n"
	webRefused = "23:36:06.216  deployment-controller      update  409  deployments/status   web\n"
	podCreated = "23:36:06.217  replicaset-controller      create  201  pods\n"
)

func TestEachWriteIsALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{path}, webCreated + webRefused + podCreated},
		{[]string{path, "default"}, webCreated + webRefused},
	} {
		var printed strings.Builder
		if err := run(row.args, &printed); err != nil {
			t.Error(err)
		}
		if printed.String() != row.want {
			t.Errorf("audit %q prints\n%s\nnot\n%s", row.args[1:], printed.String(), row.want)
		}
	}
}

func TestWhatIsNoLogIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {path}, {path + ".none"}, {path, "a", "b"}} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("audit %q is no error", args)
		}
	}
}
