// SPDX-License-Identifier: Apache-2.0

// A test that every command block of the tree is run or skipped with a reason.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const moduleRoot = "../.."

// opening matches the first line of a fenced block. It also matches the last line, which
// commandBlocks recognizes because the two alternate.
var opening = regexp.MustCompile("^ *```([a-z]*)$")

// TestEachCommandBlockIsRunOrSkipped finds the blocks without the Markdown parser, so
// that it notices a block that the parser misses.
func TestEachCommandBlockIsRunOrSkipped(t *testing.T) {
	documents, err := findDocuments(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/contract.md", "docs/operations.md", "CONTRIBUTING.md"} {
		if !slices.Contains(documents, name) {
			t.Errorf("%s was not found, only %s", name, strings.Join(documents, ", "))
		}
	}
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(moduleRoot, name))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := parseDocument(source)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range commandBlocks(string(source)) {
				if !slices.ContainsFunc(steps, func(s step) bool { return s.kind == stepRun && (s.line == line || s.line == line+1) }) {
					t.Errorf("%s:%d: this block is neither run nor skipped", name, line)
				}
			}
		})
	}
}

// commandBlocks returns the lines on which blocks of commands begin.
func commandBlocks(source string) []int {
	var found []int
	inside := false
	for i, line := range strings.Split(source, "\n") {
		match := opening.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if inside = !inside; inside && (match[1] == "sh" || match[1] == "console") {
			found = append(found, i+1)
		}
	}
	return found
}
