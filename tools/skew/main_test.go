// SPDX-License-Identifier: Apache-2.0

// Tests of the table of Kubernetes versions.

package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestParseVersions(t *testing.T) {
	kubernetes, emulated, err := parseVersions("Kubernetes  v1.37.0\netcd        v3.7.0\nEmulates    1.36 1.37\n")
	if err != nil || kubernetes != "v1.37.0" || !reflect.DeepEqual(emulated, []string{"1.36", "1.37"}) {
		t.Errorf("got %s, %v, %v", kubernetes, emulated, err)
	}
	if _, _, err := parseVersions("Kubernetes v1.37.0\n"); err == nil {
		t.Error("no error without emulated versions")
	}
}

func TestCount(t *testing.T) {
	const printed = "=== RUN   TestA\n    --- PASS: TestA/b (0.00s)\n--- PASS: TestA (0.1s)\n--- SKIP: TestC (0.00s)\n    c_test.go:1: --- FAIL: not a test\n"
	for name, test := range map[string]struct {
		printed   string
		succeeded bool
		want      outcome
	}{
		"passed and skipped":          {printed, true, outcome{2, nil, []string{"TestC"}}},
		"failed":                      {printed + "--- FAIL: TestD (1s)\n", false, outcome{2, []string{"TestD"}, []string{"TestC"}}},
		"failed without a test":       {printed, false, outcome{2, []string{"the run itself"}, []string{"TestC"}}},
		"not built":                   {"syntax error", false, outcome{0, []string{"the run itself"}, nil}},
		"passed, and nothing was run": {"", true, outcome{0, []string{"the run itself: no test passed"}, nil}},
	} {
		if got := count(test.printed, test.succeeded); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestListEscapesCellSeparators(t *testing.T) {
	if got, want := list([]string{"TestA/x|y", "TestB"}), `2: TestA/x\|y; TestB`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlaceReplacesOnlyTheTable(t *testing.T) {
	text := "a\n| 1 |\n" + beginMark + "\n| old |\n| older |\n" + endMark + "\nb\n| 2 |\n"
	want := "a\n| 1 |\n" + beginMark + "\n| new |\n" + endMark + "\nb\n| 2 |\n"
	if got, err := place(text, []string{"| new |"}); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	for _, text := range []string{"", beginMark + "\n", endMark + "\n" + beginMark + "\n"} {
		if _, err := place(text, nil); err == nil {
			t.Errorf("%q: no error without a place for the table", text)
		}
	}
}

func TestDocumentHasAPlaceForTheTable(t *testing.T) {
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	if placed, err := place(string(text), []string{"| new |"}); err != nil || !strings.Contains(placed, "\n| new |\n") {
		t.Error(err)
	}
}
