// SPDX-License-Identifier: Apache-2.0

// Command mutate makes mutants in a tree, for record.sh.
//
//	mutate TREE list PATTERN    prints the names of the tree's mutants that match
//	mutate TREE make NAME       makes one, and prints its file
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"example.com/sample-controller/test/mutants"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		os.Exit(1)
	}
}

func run(tree, command, operand string) error {
	if command == "make" {
		file, text, err := mutants.Named(operand).Apply(tree)
		if err != nil {
			return err
		}
		fmt.Println(file)
		return os.WriteFile(filepath.Join(tree, file), text, 0o600)
	}
	pattern, err := regexp.Compile(operand)
	if err != nil {
		return err
	}
	for _, m := range mutants.All() {
		if _, _, err := m.Apply(tree); pattern.MatchString(m.Name) && !errors.Is(err, mutants.ErrAbsent) {
			fmt.Println(m.Name)
		}
	}
	return nil
}
