// SPDX-License-Identifier: Apache-2.0

// Tests of the command line.

package command

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, command, args string
		wantRest            []string
		wantError           string
	}{
		{"up with nothing", "up", "", nil, ""},
		{"up with flags", "up", "-nodes 3 --keep", nil, ""},
		{"up with an argument", "up", "-nodes 3 please", nil, "up takes no arguments, only flags: please"},
		{"a flag that does not exist", "up", "-port 3", nil, "flag provided but not defined: -port"},
		{"a flag's value that is no number", "up", "-nodes many", nil, `invalid value "many" for flag -nodes`},
		{"run with a command", "run", "-- ls -l", []string{"ls", "-l"}, ""},
		{"run with flags of both", "run", "-keep -- ls -keep", []string{"ls", "-keep"}, ""},
		{"run without dashes", "run", "ls -l", []string{"ls", "-l"}, ""},
		{"run with no command", "run", "-nodes 1 --", nil, "run needs a command"},
		{"no nodes", "up", "-nodes=0", nil, ""},
		{"without components, and an empty name", "up", "-without=kwok,", nil, ""},
		{"negative nodes", "up", "-nodes=-1", nil, "-nodes -1: must be from 0 to 5000"},
		{"too many nodes", "up", "-nodes=5001", nil, "-nodes 5001: must be from 0 to 5000"},
		{"without an unknown component", "up", "-without=kubelet", nil, "-without kubelet: unknown component"},
		{"without a needed component", "up", "-without=kwok,etcd", nil, "-without etcd: unknown component, or one"},
		{"bodies of a subresource", "up", "-audit-bodies=pods/status", nil, "-audit-bodies pods/status: must be RESOURCE"},
		{"a version to emulate", "up", "-emulated-version=1.35", nil, ""},
		{"the oldest version to emulate", "up", "-emulated-version=1.34", nil, ""},
		{"its own version to emulate", "up", "-emulated-version=1.37", nil, ""},
		{"too old a version", "up", "-emulated-version=1.33", nil,
			"-emulated-version 1.33: out of range, the components can emulate 1.34 to 1.37"},
		{"too new a version", "up", "-emulated-version=1.38", nil, "-emulated-version 1.38: out of range"},
		{"another major version", "up", "-emulated-version=2.35", nil, "-emulated-version 2.35: out of range"},
		{"a patch version", "up", "-emulated-version=1.35.1", nil, "-emulated-version 1.35.1: not MAJOR.MINOR"},
		{"a version with a v", "up", "-emulated-version=v1.35", nil, "-emulated-version v1.35: not MAJOR.MINOR"},
		{"a version with a component", "up", "-emulated-version=kube=1.35", nil, "-emulated-version kube=1.35: not MAJOR.MINOR"},
		{"an incomplete version", "up", "-emulated-version=1.", nil, "-emulated-version 1.: not MAJOR.MINOR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, rest, err := parse(test.command, strings.Fields(test.args))
			switch {
			case test.wantError != "":
				if err == nil || !strings.HasPrefix(err.Error(), test.wantError) {
					t.Errorf("got %v, want %s", err, test.wantError)
				}
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %v", err)
				}
			case err != nil:
				t.Error(err)
			case !slices.Equal(rest, test.wantRest) && len(rest)+len(test.wantRest) > 0:
				t.Errorf("arguments %q, want %q", rest, test.wantRest)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/tmp/kubeconfig": "/tmp/kubeconfig",
		"/my files/k":     "'/my files/k'",
		"/it's/k":         `'/it'\''s/k'`,
		"/a/$HOME":        "'/a/$HOME'",
		"":                "''",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%s) = %s, want %s", in, got, want)
		}
	}
}
