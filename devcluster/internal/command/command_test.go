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
		{"a flag's value out of range", "run", "-nodes -1 -- true", nil, "-nodes -1: "},
		{"run with a command", "run", "-- ls -l", []string{"ls", "-l"}, ""},
		{"run with flags of both", "run", "-keep -- ls -keep", []string{"ls", "-keep"}, ""},
		{"run without dashes", "run", "ls -l", []string{"ls", "-l"}, ""},
		{"run with no command", "run", "-nodes 1 --", nil, "run needs a command"},
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
