// SPDX-License-Identifier: Apache-2.0

// Whether the exploration can fail: it must find each mutant.

package explore

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var only = flag.String("mutants", "", "explore the copies of the controller with a mistake whose name matches; each takes up to minutes")

// defects are those of test/faults, as patches.
var defects = []mutant{
	{name: "no-resource-version"}, {name: "no-uid-check"}, {name: "no-rename-cleanup"}, {name: "status-each-pass"}, {name: "failed-write-counts"},
}

func TestMutants(t *testing.T) {
	if *only == "" {
		t.Skip("run it with -args -mutants=.")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	chosen := regexp.MustCompile(*only)
	for _, m := range slices.Concat(defects, common, mutations, guards) {
		if chosen.MatchString(m.name) {
			t.Run(m.name, func(t *testing.T) { check(t, root, m) })
		}
	}
}

// check explores a mutant, and fails if that is not found which must be.
func check(t *testing.T, root string, m mutant) {
	t.Helper()
	overlay := replaced
	if m.file == "" {
		overlay = patched
	}
	output := exploreMutant(t, root, cmp.Or(m.world, "medium"), overlay(t, root, m))
	rule, steps := firstViolation(output)
	switch {
	case rule == "" && m.missed == "":
		t.Errorf("not found:\n%s", output)
	case rule == "":
		fmt.Printf("mutant: | %s | not found: %s |\n", m.name, m.missed)
	case m.missed != "":
		t.Errorf("found, although it is listed as one that is not: %s", rule)
	default:
		fmt.Printf("mutant: | %s | %s steps: %s |\n", m.name, steps, rule)
	}
}

var (
	ruleOf = regexp.MustCompile(`(?m)^ +explore\.go:\d+: (.*)$`)
	stepOf = regexp.MustCompile(`(?m)^ +(\d+)\. `)
)

// firstViolation returns the rule that an exploration found broken, and after how many
// steps.
func firstViolation(output string) (rule, steps string) {
	found := ruleOf.FindStringSubmatchIndex(output)
	if len(found) == 0 || strings.HasSuffix(output[found[2]:found[3]], boundMet) {
		return "", ""
	}
	story := output[found[1]:]
	if end := strings.Index(story, "--- FAIL"); end >= 0 {
		story = story[:end]
	}
	all := stepOf.FindAllStringSubmatch(story, -1)
	if len(all) == 0 {
		return output[found[2]:found[3]], "0"
	}
	return output[found[2]:found[3]], all[len(all)-1][1]
}

// exploreMutant explores worlds with some files replaced, up to the first
// violation.
func exploreMutant(t *testing.T, root, worlds string, overlay map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(directory, "overlay.json"), filepath.Join(directory, "explore.test")
	if err := os.WriteFile(list, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay="+list, "-o", program, ".")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the mutant: %v\n%s", err, output)
	}
	run := exec.CommandContext(t.Context(), program, "-test.run=^TestExplore$", "-test.failfast", "-explore="+worlds, "-explore.minutes=2", "-explore.gigabytes=3")
	run.Dir = root
	output, err := run.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatalf("exploring the mutant: %v", err)
	}
	return string(output)
}

// replaced returns the file of a mutant, as an overlay.
func replaced(t *testing.T, root string, m mutant) map[string]string {
	t.Helper()
	original := filepath.Join(root, m.file)
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		t.Fatalf("%s has the text of the mutant %d times, want once:\n%s", m.file, n, m.from)
	}
	mutated := filepath.Join(t.TempDir(), filepath.Base(m.file))
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.from, m.to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{original: mutated}
}

// patched returns the files of a patch of test/faults, as an overlay.
func patched(t *testing.T, root string, m mutant) map[string]string {
	t.Helper()
	patch := filepath.Join(root, "test/faults/testdata/defects", m.name+".patch")
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	directory, overlay := t.TempDir(), map[string]string{}
	for _, file := range regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`).FindAllStringSubmatch(string(text), -1) {
		source, err := os.ReadFile(filepath.Join(root, file[1]))
		if err != nil {
			t.Fatal(err)
		}
		mutated := filepath.Join(directory, file[1])
		if err := errors.Join(os.MkdirAll(filepath.Dir(mutated), 0o700), os.WriteFile(mutated, source, 0o600)); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, file[1])] = mutated
	}
	apply := exec.CommandContext(t.Context(), "git", "apply", patch)
	apply.Dir = directory
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("applying %s: %v\n%s", m.name, err, output)
	}
	return overlay
}
