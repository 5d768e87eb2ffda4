// SPDX-License-Identifier: Apache-2.0

// Tests of the steps, the options and the programs.

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
)

func TestCountWatches(t *testing.T) {
	const metrics = `# HELP apiserver_longrunning_requests [STABLE] Gauge of all active long-running apiserver requests.
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="cluster",subresource="",verb="WATCH",version="v1alpha1"} 2
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="namespace",subresource="",verb="WATCH",version="v1alpha1"} 1
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="resource",subresource="",verb="PROXY",version="v1alpha1"} 5
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 7
apiserver_request_total{resource="foos",verb="WATCH"} 9
`
	for resource, want := range map[string]int{"foos": 3, "pods": 7, "bars": 0} {
		if got, err := countWatches([]byte(metrics), resource); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", resource, got, err, want)
		}
	}
}

func TestClusterCommandPassesFlagsOn(t *testing.T) {
	got := clusterCommand("/a b/devcluster", "/a b/demo", "/tmp/d", []string{"-exit", "-v"})
	bodies := strings.Split(got[5], ",")
	for _, resource := range []string{"foos.samplecontroller.k8s.io", "deployments.apps", "pods"} {
		if !slices.Contains(bodies, resource) {
			t.Errorf("the log lacks the bodies of %s: it has those of %q", resource, bodies)
		}
	}
	want := []string{"/a b/devcluster", "run", "-data-dir", "/tmp/d",
		"-audit-bodies", got[5], "--", "/a b/demo", "in-cluster", "/tmp/d", "-exit", "-v"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestPage checks what is printed about a page, and that its program ends.
func TestPage(t *testing.T) {
	for name, test := range map[string]struct {
		plugin string
		exit   bool
		want   string
	}{
		"a page":           {"echo \"http://page/$*\"; exec sleep 60", false, "  http://page/ui --all-namespaces --kubeconfig /k --audit  --you me\n"},
		"a failure":        {"echo no CRD >&2; exit 2", false, "has ended (exit status 2) and printed \"http://\" 0 times, want 1\nno CRD"},
		"another line":     {"echo http; exec sleep 60", false, "waited for 1: context deadline exceeded\nhttp"},
		"a demo that ends": {"echo http://page/", true, ""},
		"without a plugin": {"", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("bin", 0o700); err != nil {
				t.Fatal(err)
			}
			if test.plugin != "" {
				if err := os.WriteFile(pluginPath, []byte("#!/bin/sh\n"+test.plugin), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			d := &demo{options: &options{exit: test.exit}, out: &out, kubeconfig: "/k", log: timeline.Log{You: "me"}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			d.startPage(ctx)
			d.stopPage()
			if got := out.String(); !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("it printed %q", got)
			}
			if d.page != nil && !d.page.HasEnded() {
				t.Error("the program still runs")
			}
		})
	}
}

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
