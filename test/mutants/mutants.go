// SPDX-License-Identifier: Apache-2.0

// Package mutants has copies of the project with one mistake each. The tests are as good as
// the mutants that they notice: record runs test suites on each, and says which do.
package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is a mistake: in a file of the project, one text instead of another.
type Mutant struct {
	// Name says what the mistake is. No other mutant has it.
	Name string
	// File is relative to the project's root.
	File string
	// From occurs once in the file. To takes its place.
	From, To string
}

// All returns the mutants, those of the sync first.
func All() []Mutant { return slices.Concat(Sync, Linked, Installed) }

// Named returns the mutant of a name. It panics if there is none.
func Named(name string) Mutant {
	for _, m := range All() {
		if m.Name == name {
			return m
		}
	}
	panic(fmt.Sprintf("there is no mutant %q", name))
}

// Source returns a mutant's file, with the mistake.
func (m Mutant) Source(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), m.From); n != 1 {
		return nil, fmt.Errorf("%s has the text of the mutant %q %d times, not once:\n%s", m.File, m.Name, n, m.From)
	}
	return []byte(strings.Replace(string(text), m.From, m.To, 1)), nil
}

// IsOfDeletedFolder reports whether a mutant's file is in a directory that the project does not
// have any more.
func (m Mutant) IsOfDeletedFolder(root string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.Dir(m.File)))
	return errors.Is(err, fs.ErrNotExist)
}

// Overlay writes a mutant's file into a directory, and a list for the flag -overlay of the go
// command, whose path it returns.
func (m Mutant) Overlay(root, folder string) (list string, err error) {
	text, err := m.Source(root)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, filepath.Base(m.File))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): file}})
	if err != nil {
		return "", err
	}
	list = filepath.Join(folder, "overlay.json")
	return list, errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(list, replace, 0o600))
}
