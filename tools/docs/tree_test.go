// SPDX-License-Identifier: Apache-2.0

// A test that the documents of the tree can be read.

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const moduleRoot = "../.."

func TestDocumentsOfTheTree(t *testing.T) {
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
		source, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseDocument(source); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
