// SPDX-License-Identifier: Apache-2.0

// Tests of the options.

package cluster

import (
	"flag"
	"io"
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name, args, wantError string
	}{
		{"defaults", "", ""},
		{"chosen ports", "-api-port=6443 -etcd-port=2379", ""},
		{"no nodes", "-nodes=0", ""},
		{"without components, and an empty name", "-without=kwok,", ""},
		{"a port too high", "-api-port=65536", "-api-port 65536: must be a port from 0 to 65535"},
		{"a negative port", "-etcd-peer-port=-1", "-etcd-peer-port -1: must be a port from 0 to 65535"},
		{"one port twice", "-api-port=6443 -etcd-port=6443", "-api-port and -etcd-port are both 6443; use different ports, or 0 for any free one"},
		{"negative nodes", "-nodes=-1", "-nodes -1: must be from 0 to 5000"},
		{"too many nodes", "-nodes=5001", "-nodes 5001: must be from 0 to 5000"},
		{"without an unknown component", "-without=kubelet", "-without kubelet: unknown component"},
		{"without a needed component", "-without=kwok,etcd", "-without etcd: unknown component, or one that is always needed"},
		{"bodies of a subresource", "-audit-bodies=pods/status", "-audit-bodies pods/status: must be RESOURCE or RESOURCE.GROUP"},
		{"a version to emulate", "-emulated-version=1.35", ""},
		{"the oldest version to emulate", "-emulated-version=1.34", ""},
		{"its own version to emulate", "-emulated-version=1.37", ""},
		{"a version that is too old", "-emulated-version=1.33", "-emulated-version 1.33: out of range, the components can emulate 1.34 to 1.37"},
		{"a version that is too new", "-emulated-version=1.38", "-emulated-version 1.38: out of range, the components can emulate 1.34 to 1.37"},
		{"another major version", "-emulated-version=2.35", "-emulated-version 2.35: out of range"},
		{"a patch version", "-emulated-version=1.35.1", "-emulated-version 1.35.1: not MAJOR.MINOR, such as 1.35"},
		{"a version with a v", "-emulated-version=v1.35", "-emulated-version v1.35: not MAJOR.MINOR"},
		{"a version with a component", "-emulated-version=kube=1.35", "-emulated-version kube=1.35: not MAJOR.MINOR"},
		{"an incomplete version", "-emulated-version=1.", "-emulated-version 1.: not MAJOR.MINOR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := parseOptions(t, test.args).Validate()
			switch {
			case test.wantError == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.wantError != "" && (err == nil || !strings.HasPrefix(err.Error(), test.wantError)):
				t.Errorf("got %v, want %s", err, test.wantError)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	options := parseOptions(t, "-without=kube-scheduler,kwok")
	for component, want := range map[string]bool{ControllerManager: true, Scheduler: false, Kwok: false} {
		if got := options.runs(component); got != want {
			t.Errorf("%s is started: %t, want %t", component, got, want)
		}
	}
}

func parseOptions(t *testing.T, args string) *Options {
	t.Helper()
	var options Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.AddFlags(flags)
	if err := flags.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return &options
}
