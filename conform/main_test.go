// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/conform/judge"
)

func TestTheCommandLine(t *testing.T) {
	for name, row := range map[string]struct{ args, want string }{
		"no program":          {"-object x", "no program"},
		"no object":           {"-- prog", "no -object"},
		"a bad expression":    {"-object x -run ( -- prog", "-run"},
		"a missing file":      {"-object x -settings missing.yaml -- prog", "missing.yaml"},
		"an unknown flag":     {"-objects x -- prog", "objects"},
		"a good command line": {"-object x -object y -crd z -- prog -flag", ""},
	} {
		r := &runner{}
		err := r.parse(strings.Fields(row.args))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestTheCommandThatRepeatsACaseHasNoOtherChoiceOfCases(t *testing.T) {
	for _, choice := range []string{"-run kill", "-run=kill", "--run kill -output=_output/conform"} {
		r := &runner{}
		if err := r.parse(strings.Fields("-object run " + choice + " -- prog -run x")); err != nil {
			t.Fatal(err)
		}
		if got, want := r.repeat("a/b"), "go run ./conform -run '^a/b$' -output _output/conform/repeated -object run -- prog -run x"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheManualHasEachFault compares README's table of faults with those that can be injected.
func TestTheManualHasEachFault(t *testing.T) {
	manual, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(manual), "## The faults")
	table, _, _ = strings.Cut(table, "## ")
	var listed []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 3 {
			listed = append(listed, strings.Split(cells[1], ", ")...)
		}
	}
	listed = listed[1:] // the header's
	all := slices.DeleteFunc(slices.Collect(maps.Keys(injections())), func(name string) bool { return name == judge.Touching })
	slices.Sort(listed)
	if slices.Sort(all); !slices.Equal(listed, all) {
		t.Errorf("the manual has the faults\n%v, and there are\n%v", listed, all)
	}
}

func TestSettingsHaveDefaultsAndPathsRelativeToTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	text := "manifests: [rbac]\nobjects: [a.yaml]\nprogram: [./bin/manager, ./x]\nsettle: 1s\nskip: {'^outage-safe/422': on purpose}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readSettings(file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Settle.Duration != time.Second || s.Timeout.Duration != 2*time.Minute {
		t.Errorf("settle is %v and timeout %v", s.Settle.Duration, s.Timeout.Duration)
	}
	if want := filepath.Join(filepath.Dir(file), "rbac"); s.Manifests[0] != want {
		t.Errorf("the manifest is %s, want %s", s.Manifests[0], want)
	}
	r := &runner{}
	if err := r.parse([]string{"-settings", file}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(file)
	if got, want := fmt.Sprint(r.objects, r.args), fmt.Sprintf("[%s/a.yaml] [%s/bin/manager ./x]", folder, folder); got != want {
		t.Errorf("the objects and the program are %s, want %s", got, want)
	}
	r = &runner{}
	if err := r.parse([]string{"-settings", file, "-object", "b.yaml", "--", "other"}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.objects, r.args), "[b.yaml] [other]"; got != want {
		t.Errorf("with arguments, the objects and the program are %s, want %s", got, want)
	}
	if s.skipped("outage-safe/422/create/x") != "on purpose" || s.skipped("outage-safe/403/create/x") != "" {
		t.Error("the wrong cases are skipped")
	}
	for _, wrong := range []string{"settel: 1s", "ignore: ['(']", "skip: {'(': x}"} {
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readSettings(file); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
