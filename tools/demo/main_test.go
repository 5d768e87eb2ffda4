// SPDX-License-Identifier: Apache-2.0

// Tests of the steps, the options and the programs.

package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSteps(t *testing.T) {
	foo := line{kind: "Foo", did: created, who: you}
	progressing := line{kind: "Foo", did: reported, who: sampleController, note: "0/1 available, Progressing"}
	notReady := line{kind: "Pod", did: reported, who: kubelet, note: "not Ready"}
	usurper := line{kind: "Pod", did: bound, who: you}
	lines := []line{
		foo, progressing, notReady, usurper, foo,
		{kind: "Deployment", did: created, who: sampleController, note: "owner Foo"},
		{kind: "ReplicaSet", did: created, who: deploymentController},
		{kind: "Pod", did: created, who: replicaSetController},
		{kind: "Pod", did: bound, who: scheduler, note: "to node-1"},
		{kind: "Pod", did: reported, who: kubelet, note: "Ready"},
		{kind: "Foo", did: reported, who: sampleController, note: "1/1 available, Ready"},
	}
	steps := firstSteps()
	for i, want := range []int{6, 6, 6, 6, 6, 5, 4, 3, 2, 1, 0} {
		if steps = without(steps, lines[i]); len(steps) != want {
			t.Fatalf("after %+v: %s are left, want %d", lines[i], listOf(steps), want)
		}
	}
}

func TestStepsOfAScaleAndADeletion(t *testing.T) {
	podReady := line{kind: "Pod", did: reported, who: kubelet, note: "Ready"}
	podGone := line{kind: "Pod", did: removed, who: kubelet}
	for name, test := range map[string]struct {
		steps []step
		lines []line
	}{
		"scale": {scaleSteps(), []line{
			{kind: "Foo", did: scaled, who: you, note: "replicas 1 -> 3"},
			{kind: "Deployment", did: scaled, who: sampleController},
			{kind: "ReplicaSet", did: scaled, who: deploymentController},
			podReady, podReady,
			{kind: "Foo", did: reported, who: sampleController, note: "3/3 available, Ready"},
		}},
		"delete": {deleteSteps(), []line{
			{kind: "Foo", did: deleted, who: you},
			{kind: "Deployment", did: deleted, who: collector},
			{kind: "ReplicaSet", did: deleted, who: collector},
			podGone, podGone, podGone,
		}},
	} {
		steps := without(test.steps, line{kind: "Foo", did: reported, who: sampleController, note: "1/3 available, Progressing"})
		for i, l := range test.lines {
			if steps = without(steps, l); len(steps) != len(test.lines)-i-1 {
				t.Errorf("%s: after %+v: %s are left", name, l, listOf(steps))
			}
		}
	}
}

func TestPlanActsOnceUnlessTheDemoEnds(t *testing.T) {
	if stays, ends := plan(false), plan(true); len(stays) != 1 || len(ends) != 3 || !ends[2].collects {
		t.Errorf("got %d and %d acts", len(stays), len(ends))
	}
}

func TestCountWatches(t *testing.T) {
	const metrics = `# HELP apiserver_longrunning_requests [STABLE] Gauge of all active long-running apiserver requests.
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="cluster",subresource="",verb="WATCH",version="v1alpha1"} 2
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="namespace",subresource="",verb="WATCH",version="v1alpha1"} 1
apiserver_longrunning_requests{component="apiserver",group="samplecontroller.k8s.io",resource="foos",scope="resource",subresource="",verb="PROXY",version="v1alpha1"} 5
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 7
apiserver_request_total{resource="foos",verb="WATCH"} 9
`
	for resource, want := range map[string]float64{"foos": 3, "pods": 7, "bars": 0} {
		if got, err := countWatches([]byte(metrics), resource); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", resource, got, err, want)
		}
	}
	if _, err := countWatches([]byte("<html>"), "foos"); err == nil {
		t.Error("what is no metrics was read as none")
	}
}

// createFooLine is a line of the audit log, shortened by what is not read.
const createFooLine = `{"stage":"ResponseComplete","requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos",` +
	`"verb":"create","user":{"username":"devcluster-admin"},"userAgent":"kubectl/v1","objectRef":{"resource":"foos","namespace":"default","name":"example-foo"},` +
	`"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.506749Z"}` + "\n"

func TestDrawLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(createFooLine+createFooLine[:99]), 0o600); err != nil {
		t.Fatal(err)
	}
	document, err := drawLog(path, "devcluster-admin")
	if err != nil || !strings.Contains(string(document), ">you<") {
		t.Errorf("got %v, %s", err, document)
	}
}

func TestListOf(t *testing.T) {
	want := "Pod bound by kube-scheduler; Pod reported Ready by kwok (as kubelet)"
	if got := listOf(firstSteps()[4:6]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseOptions(t *testing.T) {
	tests := map[string]struct {
		args []string
		want options
		err  string
	}{
		"no flags":    {nil, options{timeout: time.Minute, picture: picturePath}, ""},
		"all flags":   {[]string{"-exit", "-v", "-timeout=5s", "-picture="}, options{exit: true, verbose: true, timeout: 5 * time.Second}, ""},
		"no time":     {[]string{"-timeout=0s"}, options{}, "-timeout=0s: must be more than 0"},
		"an argument": {[]string{"up"}, options{}, `unexpected argument "up"`},
		"no flag":     {[]string{"-x"}, options{}, "flag provided but not defined: -x (see -help)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(test.args, io.Discard)
			switch {
			case test.err == "" && (err != nil || *got != test.want):
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			case test.err != "" && (!errors.As(err, new(usageError)) || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %s", err, test.err)
			}
		})
	}
	var help strings.Builder
	if _, err := parseOptions([]string{"-help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-timeout") {
		t.Errorf("-help: %v, %q", err, help.String())
	}
}

func TestClusterCommandPassesFlagsOn(t *testing.T) {
	got := clusterCommand("/a b/devcluster", "/a b/demo", "/tmp/d", []string{"foos.samplecontroller.k8s.io", "pods"}, []string{"-exit", "-v"})
	want := []string{"/a b/devcluster", "run", "-data-dir", "/tmp/d",
		"-audit-bodies", "foos.samplecontroller.k8s.io,pods", "--", "/a b/demo", "in-cluster", "/tmp/d", "-exit", "-v"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
