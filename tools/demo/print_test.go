// SPDX-License-Identifier: Apache-2.0

// Test of what is printed.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
)

// createFooLine is a line of the audit log, shortened by what is not read.
const createFooLine = `{"stage":"ResponseComplete","requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos",` +
	`"verb":"create","user":{"username":"devcluster-admin"},"userAgent":"kubectl/v1","objectRef":{"resource":"foos","namespace":"default","name":"example-foo","apiGroup":"samplecontroller.k8s.io"},` +
	`"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.506749Z"}` + "\n"

// createDeploymentLine is a write that the API server answered at the same time.
var createDeploymentLine = strings.NewReplacer("devcluster-admin", "system:serviceaccount:a:sample-controller", "kubectl/v1", "sample-controller/v1",
	"samplecontroller.k8s.io/v1alpha1", "apps/v1", "samplecontroller.k8s.io", "apps", "foos", "deployments").Replace(createFooLine)

// TestEachWriteIsPrintedOnce: only when the log has settled, and not again.
func TestEachWriteIsPrintedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(createFooLine+createDeploymentLine), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &demo{options: &options{picture: filepath.Join(t.TempDir(), "new", "x.svg")}, out: &out,
		audit: audit.Log{Path: path}, log: timeline.Log{You: "devcluster-admin"}}
	now := time.Now()
	for _, after := range []time.Duration{0, settleTime / 2, settleTime, 2 * settleTime} {
		settled, err := d.tell(now.Add(after))
		if err != nil || settled != (after >= settleTime) {
			t.Errorf("after %v the log has settled: %v, %v", after, settled, err)
		}
		printedLines := strings.Join(strings.Fields(out.String()), " ")
		for _, write := range []string{"0 you create Foo example-foo", "0 sample-controller create Deployment example-foo"} {
			if printed := strings.Count(printedLines, write); (printed == 1) != settled {
				t.Errorf("after %v it has printed %q", after, out.String())
			}
		}
	}
	if err := d.draw(); err != nil || !strings.Contains(out.String(), "x.svg") {
		t.Errorf("the picture: %v, %q", err, out.String())
	}
}
