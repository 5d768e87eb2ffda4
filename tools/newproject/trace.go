// SPDX-License-Identifier: Apache-2.0

// The search for traces of the sample in the new project.

package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// trace is a place in the new project that still contains a name of the sample.
type trace struct {
	file string
	line int
	text string
}

func (t trace) String() string { return fmt.Sprintf("%s:%d: %s", t.file, t.line, t.text) }

var (
	oldModule  = regexp.MustCompile(`(^|[^a-zA-Z0-9.-])example\.com/sample-controller|com\.example\.sample-controller`)
	oldProgram = regexp.MustCompile(`(?i)sample[-_ .]?controller|\bsamplev[0-9]`)
	oldKind    = regexp.MustCompile(`(?i:foo)[a-z]*`)
)

// others are texts of Kubernetes in generated files.
var others = []string{"foo.example.com/CamelCase", `\"aOption\":\"foo\"`, "'Foo' is the kind for a resource 'foo'"}

// findTraces searches the new project for names of the sample. It ignores those that are
// part of the user's names.
func findTraces(files []treeFile, n names) []trace {
	chosen := chosenNames(n)
	var found []trace
	for _, file := range files {
		if hasTrace(file.path, chosen) {
			found = append(found, trace{file.path, 0, "in the path"})
		}
		if path.Base(file.path) == "go.sum" || !file.isText() {
			continue
		}
		for i, line := range strings.Split(string(file.data), "\n") {
			if hasTrace(line, chosen) {
				found = append(found, trace{file.path, i + 1, strings.TrimSpace(line[:min(len(line), 200)])})
			}
		}
	}
	return found
}

// chosenNames returns all spellings of the new names that look like a trace, the longest
// first.
func chosenNames(n names) []string {
	s := speller{names: n}
	var chosen []string
	for _, name := range []string{n.Module, n.Program, pascal(n.Program), s.programTitle(), strings.ReplaceAll(n.Program, "-", "_"),
		n.Group, n.modelPackage(), n.Package, n.Package + n.Version, n.Kind, n.Kinds, n.Kind + "s", n.Short} {
		if oldKind.MatchString(name) || oldProgram.MatchString(name) {
			chosen = append(chosen, regexp.QuoteMeta(name))
		}
	}
	slices.SortFunc(chosen, func(a, b string) int { return len(b) - len(a) })
	return chosen
}

func hasTrace(line string, chosen []string) bool {
	if !oldKind.MatchString(line) && !oldModule.MatchString(line) && !oldProgram.MatchString(line) {
		return false
	}
	if oldModule.MatchString(line) {
		return true
	}
	for _, text := range others {
		line = strings.ReplaceAll(line, text, "")
	}
	if len(chosen) > 0 {
		line = regexp.MustCompile(`(?i)`+strings.Join(chosen, "|")).ReplaceAllString(line, "0")
	}
	if oldProgram.MatchString(line) {
		return true
	}
	for _, run := range oldKind.FindAllString(line, -1) {
		if !english.MatchString(run) {
			return true
		}
	}
	return false
}
