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

// Leaving out what the new project does not get.

package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// omitted are the folders and files that the new project does not get, as path.Match
// patterns: comparisons of this project with others, what concerns only this project, and
// this program.
var omitted = []string{
	"tools/newproject",
	"docs/benchmarks*", "docs/faults.md", "docs/tour*", "docs/upgrade.md",
	"tools/docs/*.go", "tools/docs/go.sum", "tools/docs/claims/tour_test.go",
	"test/bench", "test/faults", "test/thirdparty",
	"test/e2e/thirdparty_test.go", "test/e2e/contract_upgrade_test.go",
	"README.md", // newReadme replaces it
}

// made are the files that hack/update-codegen.sh generates.
var made = []string{"pkg/generated", "pkg/apis/*/*/zz_generated.*", "artifacts/crd/*_*.yaml"}

// matches reports whether a file, or a folder that contains it, matches one of the
// patterns.
func matches(file string, patterns []string) bool {
	for name := file; name != "."; name = path.Dir(name) {
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}
	return false
}

// omitMark matches a mark. The new project gets neither a line with "newproject:omit",
// nor the lines from one with "newproject:omit begin" to the next with "newproject:omit
// end".
var omitMark = regexp.MustCompile(`newproject:omit( begin| end)?\b`)

// omit removes the marked lines.
func omit(file string, data []byte) ([]byte, error) {
	if !omitMark.Match(data) {
		return data, nil
	}
	var out []string
	begun := 0
	for i, line := range strings.SplitAfter(string(data), "\n") {
		mark := omitMark.FindStringSubmatch(line)
		if mark == nil {
			if begun == 0 {
				out = appendLine(out, line)
			}
			continue
		}
		switch mark[1] {
		case " begin":
			if begun != 0 {
				return nil, fmt.Errorf("%s:%d: newproject:omit begin before the end of the one in line %d", file, i+1, begun)
			}
			begun = i + 1
		case " end":
			if begun == 0 {
				return nil, fmt.Errorf("%s:%d: newproject:omit end without a begin", file, i+1)
			}
			begun = 0
		}
	}
	if begun != 0 {
		return nil, fmt.Errorf("%s:%d: newproject:omit begin without an end", file, begun)
	}
	return []byte(strings.TrimRight(strings.Join(out, ""), "\n") + "\n"), nil
}

// appendLine appends a line. It drops an empty line after an empty one, because the lines
// between the two were left out.
func appendLine(lines []string, line string) []string {
	if line == "\n" && len(lines) > 0 && lines[len(lines)-1] == "\n" {
		return lines
	}
	return append(lines, line)
}
