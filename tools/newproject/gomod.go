/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Writing go.mod files with the new module path.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// rewriteGoMod returns a go.mod with the new module path in the module line, in
// requirements and in replacements. The file must be formatted by the go command, which
// make tidy-check ensures.
func rewriteGoMod(name string, data []byte, to string) ([]byte, error) {
	var out []string
	hasModule := false
	for lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"); len(lines) > 0; {
		verb, isBlock := strings.CutSuffix(lines[0], " (")
		if isBlock {
			end := slices.Index(lines, ")")
			if end < 0 {
				return nil, fmt.Errorf("%s: the block %q does not end", name, lines[0])
			}
			out = append(out, rewriteBlock(verb, lines[1:end], to)...)
			lines = lines[end+1:]
			continue
		}
		verb, rest, _ := strings.Cut(lines[0], " ")
		hasModule = hasModule || verb == "module"
		if rest, keep := rewriteModLine(verb, rest, to); keep {
			out = append(out, strings.TrimSuffix(verb+" "+rest, " "))
		}
		lines = lines[1:]
	}
	if !hasModule {
		return nil, fmt.Errorf("%s has no module line", name)
	}
	return []byte(strings.Join(out, "\n") + "\n"), nil
}

// rewriteBlock returns a block of a go.mod with the new module path, sorted again. A
// block of one line gets no parentheses.
func rewriteBlock(verb string, lines []string, to string) []string {
	var out []string
	comment := ""
	for _, line := range lines {
		line = strings.TrimPrefix(line, "\t")
		if line == "" || strings.HasPrefix(line, "//") {
			comment += "\t" + line + "\n"
			continue
		}
		if line, keep := rewriteModLine(verb, line, to); keep {
			out = append(out, comment+"\t"+line)
		}
		comment = ""
	}
	if len(out) == 1 && !strings.Contains(out[0], "\n") {
		return []string{verb + " " + strings.TrimPrefix(out[0], "\t")}
	}
	// A comment stays above its line.
	slices.SortStableFunc(out, func(a, b string) int {
		return slices.Compare(strings.Fields(a[strings.LastIndex(a, "\n")+1:]), strings.Fields(b[strings.LastIndex(b, "\n")+1:]))
	})
	return append(append([]string{verb + " ("}, out...), ")")
}

// rewriteModLine returns the part of a line after the verb, with the new module path, and
// reports whether the new project keeps the line.
func rewriteModLine(verb, line, to string) (string, bool) {
	old, rest, _ := strings.Cut(line, " ")
	// Kubernetes' own sample: a go.mod replaces it, but none requires it.
	if verb == "replace" && old == "k8s.io/sample-controller" {
		return "", false
	}
	below, isOurs := strings.CutPrefix(old, sample.Module)
	if !isOurs || below != "" && below[0] != '/' || !slices.Contains([]string{"module", "require", "replace"}, verb) {
		return line, true
	}
	renamed := to + below
	if verb == "require" {
		_, after, _ := strings.Cut(rest, " ")
		rest = strings.TrimSpace(versionFor(renamed) + " " + after)
	}
	return strings.TrimSpace(renamed + " " + rest), true
}

// versionFor returns the version to require of a module that is replaced by a folder. Its
// major version must be that of the path.
func versionFor(path string) string {
	_, major := splitMajor(path)
	if major == "" {
		major = "v0"
	}
	return major + ".0.0-00010101000000-000000000000"
}
