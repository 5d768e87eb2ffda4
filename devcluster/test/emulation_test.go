// SPDX-License-Identifier: Apache-2.0

// Test of an emulated version.

package test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// TestEmulatedVersion checks that all components work together when they emulate the
// oldest version: Pods become ready, and are garbage collected with their Deployment. A
// scheduler that does not emulate the API server's version never becomes ready.
func TestEmulatedVersion(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), binary(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "\nEmulates ")
	emulated := strings.Fields(list)
	if len(emulated) < 2 {
		t.Fatalf("no version to emulate except its own:\n%s", out)
	}
	oldest := emulated[0]
	d := up(t, t.TempDir(), "-emulated-version="+oldest)
	var server struct{ EmulationMajor, EmulationMinor string }
	if err := json.Unmarshal([]byte(d.kubectl("get", "--raw=/version")), &server); err != nil {
		t.Fatal(err)
	}
	if got := server.EmulationMajor + "." + server.EmulationMinor; got != oldest {
		t.Errorf("the API server emulates %s, want %s", got, oldest)
	}
	d.kubectl("create", "deployment", "web", "--image=nginx")
	d.kubectl("rollout", "status", "deployment/web", "--timeout=25s")
	d.kubectl("delete", "deployment", "web")
	d.kubectl("wait", "--for=delete", "pods", "--selector=app=web", "--timeout=25s")
	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
