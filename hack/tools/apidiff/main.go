// SPDX-License-Identifier: Apache-2.0

// Command apidiff prints what differs between the exported API of the packages in two directories of one
// module, by golang.org/x/exp/apidiff. The command of that module compares one package at a time, and
// loads what it imports each time.
//
//	apidiff OLD NEW PATTERN...
//
// It exits with status 3 if a change is incompatible.
package main

import (
	"errors"
	"fmt"
	"go/types"
	"os"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

const incompatible = 3

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: apidiff OLD NEW PATTERN...")
		os.Exit(2)
	}
	compatible, err := compare(os.Args[1], os.Args[2], os.Args[3:])
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "apidiff: %v\n", err)
		os.Exit(1)
	case !compatible:
		os.Exit(incompatible)
	}
}

func compare(before, after string, patterns []string) (compatible bool, err error) {
	older, errBefore := load(before, patterns)
	newer, errAfter := load(after, patterns)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return false, err
	}
	now := map[string]*types.Package{}
	for _, p := range newer {
		now[p.PkgPath] = p.Types
	}
	compatible = true
	for _, p := range older {
		if now[p.PkgPath] == nil {
			compatible = false
			fmt.Printf("%s\nIncompatible changes:\n- package removed\n", p.PkgPath)
			continue
		}
		report := apidiff.Changes(p.Types, now[p.PkgPath])
		if len(report.Changes) == 0 {
			continue
		}
		fmt.Println(p.PkgPath)
		if err := report.Text(os.Stdout); err != nil {
			return false, err
		}
		for _, change := range report.Changes {
			compatible = compatible && change.Compatible
		}
	}
	return compatible, nil
}

// load type-checks the packages that patterns name in a directory.
func load(dir string, patterns []string) ([]*packages.Package, error) {
	loaded, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadTypes}, patterns...)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range loaded {
		for _, err := range p.Errors {
			errs = append(errs, err)
		}
	}
	return loaded, errors.Join(errs...)
}
