// SPDX-License-Identifier: Apache-2.0

// Tests of the steps, the options and the programs.

package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
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
	for resource, want := range map[string]float64{"foos": 3, "pods": 7, "bars": 0} {
		if got, err := countWatches([]byte(metrics), resource); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", resource, got, err, want)
		}
	}
	if _, err := countWatches([]byte("<html>"), "foos"); err == nil {
		t.Error("what is no metrics was read as none")
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
