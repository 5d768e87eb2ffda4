// SPDX-License-Identifier: Apache-2.0

// Package mutants has copies of the project with one mistake each. The tests are as good as
// the mutants that they notice: record runs test suites on each, and says which do.
//
// A mutant names a function and an operator:
//
//	{"a child in deletion is repaired", "plan.ChildKind.decide", Never("IsTerminating", "named")}
//
// The operator finds its place by what is mentioned there: names, literals, operators such as !=, and
// keywords. The place is the smallest part of the function that mentions all of them, here
// IsTerminating(named), and it must be the only one. So the table of mutants stays as it is when a
// function moves to another file, a package to another folder, or when code is reformatted.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Mutant is a mistake in one place of the project.
type Mutant struct {
	// Name says what the mistake is. No other mutant has it.
	Name string
	// In is a function, method, variable or constant of a package. What follows it restricts the
	// mistake to the smallest statement, case or element that mentions all of that, such as
	// "queue.NextAttempt IsLostRace". For Text, In is a path.
	In string
	Op Operator
}

// ErrAbsent means that the project does not have a mutant's package or folder.
var ErrAbsent = errors.New("the project does not have it")

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

// Apply returns a mutant's file, relative to the project's root, and its text with the mistake.
func (m Mutant) Apply(root string) (file string, text []byte, err error) {
	p, err := m.Op.find(os.DirFS(root), m.In)
	if err == nil {
		text, err = m.Op.replace(p)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the mutant %q: %s: %w", m.Name, m.In, err)
	}
	return p.file, text, nil
}

// Overlay writes a mutant's file into a directory, and a list for the flag -overlay of a go command
// that runs in root. It returns the list's path.
func (m Mutant) Overlay(root, folder string) (list string, err error) {
	file, text, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(folder, filepath.Base(file))
	list = filepath.Join(folder, "overlay.json")
	replace := fmt.Appendf(nil, `{"Replace": {%q: %q}}`, file, mutated)
	return list, errors.Join(os.WriteFile(mutated, text, 0o600), os.WriteFile(list, replace, 0o600))
}
