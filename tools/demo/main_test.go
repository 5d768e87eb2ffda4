// SPDX-License-Identifier: Apache-2.0

// Tests of the steps, the options and the programs.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
)

func TestFoosAreWatched(t *testing.T) {
	const watches = `apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="cluster",subresource="",verb="WATCH",version="v1alpha1"} `
	for metrics, want := range map[string]bool{
		watches + "1\n": false, "# TYPE x gauge\n" + watches + "2\nx 1\n": true, watches + "10\n": true, watches + "0\n": false,
		strings.Replace(watches, "foos", "pods", 1) + "7\n": false, strings.Replace(watches, "WATCH", "PROXY", 1) + "5\n": false,
	} {
		if foosAreWatched.MatchString(metrics) != want {
			t.Errorf("got %t for\n%s", !want, metrics)
		}
	}
}

// TestPage checks the output about a page, and that its program exits.
func TestPage(t *testing.T) {
	for plugin, want := range map[string]string{
		`echo "http://page/$*"; exec sleep 60`: "  http://page/ui --all-namespaces --kubeconfig /k --audit  --you me\n",
		"echo no CRD >&2; exit 2":              "Could not start the page: ",
		"echo no URL; exec sleep 60":           "deadline exceeded\nno URL",
	} {
		t.Chdir(t.TempDir())
		if err := errors.Join(os.Mkdir("bin", 0o700), os.WriteFile(pluginPath, []byte("#!/bin/sh\n"+plugin), 0o700)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		d := &demo{options: &options{}, out: &out, kubeconfig: "/k", log: timeline.Log{You: "me"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.startPage(ctx)
		d.stop()
		cancel()
		if !strings.Contains(out.String(), want) || !d.page.HasEnded() {
			t.Errorf("%s: it printed %q, and has ended: %t", plugin, out.String(), d.page.HasEnded())
		}
	}
}

// createFooLine is a line of the audit log, without the fields that are not read.
const createFooLine = `{"stage":"ResponseComplete","requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos",` +
	`"verb":"create","user":{"username":"devcluster-admin"},"userAgent":"kubectl/v1","objectRef":{"resource":"foos","namespace":"default","name":"example-foo","apiGroup":"samplecontroller.k8s.io"},` +
	`"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.506749Z"}` + "\n"

// createDeploymentLine is a write that the API server answered at the same time.
var createDeploymentLine = strings.NewReplacer("devcluster-admin", "system:serviceaccount:a:sample-controller", "kubectl/v1", "sample-controller/v1",
	"samplecontroller.k8s.io/v1alpha1", "apps/v1", "samplecontroller.k8s.io", "apps", "foos", "deployments").Replace(createFooLine)

// TestEachWriteIsPrintedOnce checks that a write is printed once the log has settled, and only once.
func TestEachWriteIsPrintedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(createFooLine+createDeploymentLine), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &demo{options: &options{picture: filepath.Join(t.TempDir(), "new", "x.svg")}, out: &out,
		audit: audit.Log{Path: path}, log: timeline.Log{You: "devcluster-admin"}, printed: sets.New[int]()}
	now := time.Now()
	for _, after := range []time.Duration{0, settleTime / 2, settleTime, 2 * settleTime} {
		settled, err := d.tell(now.Add(after))
		if err != nil || settled != (after >= settleTime) {
			t.Errorf("after %v the log has settled: %v, %v", after, settled, err)
		}
		printedLines := strings.Join(strings.Fields(out.String()), " ")
		for _, write := range []string{"0 you create foos example-foo", "0 sample-controller create deployments example-foo"} {
			if printed := strings.Count(printedLines, write); (printed == 1) != settled {
				t.Errorf("after %v it has printed %q", after, out.String())
			}
		}
	}
	// Another write at the same time comes late.
	late := strings.Replace(createDeploymentLine, "create", "patch", 1)
	if err := os.WriteFile(path, []byte(createFooLine+createDeploymentLine+late), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{3 * settleTime, 4 * settleTime} {
		if _, err := d.tell(now.Add(after)); err != nil {
			t.Error(err)
		}
	}
	if strings.Count(out.String(), " create ") != 2 || strings.Count(out.String(), " patch ") != 1 {
		t.Errorf("it has printed %q", out.String())
	}
	if err := d.draw(); err != nil || !strings.Contains(out.String(), "x.svg") {
		t.Errorf("the picture: %v, %q", err, out.String())
	}
}
