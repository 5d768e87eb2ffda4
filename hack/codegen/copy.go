// SPDX-License-Identifier: Apache-2.0

// The generators work in a copy of the sources. What the go command builds in the tree, it must
// build in the copy.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// copyImports copies the directories of root's module that pkg/apis imports, and makes the
// copy's go.mod name the same modules as the tree's: those in directories by absolute paths.
func copyImports(root, dir string) error {
	packages, err := imports(root)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(filepath.Join(root, "go.mod"), text, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range slices.Clone(mod.Replace) {
		if r.New.Version == "" && !filepath.IsAbs(r.New.Path) {
			errs = append(errs, mod.AddReplace(r.Old.Path, r.Old.Version, filepath.Join(root, r.New.Path), ""))
		}
	}
	for _, p := range packages {
		at, _ := filepath.Rel(root, p.Dir)
		if p.Module != nil && p.Module.Main && !strings.HasPrefix(at, filepath.Join("pkg", "apis")) {
			errs = append(errs, copyPackage(p, filepath.Join(dir, at)))
		}
	}
	text, err = mod.Format()
	errs = append(errs, err, os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600))
	return errors.Join(append(errs, copyFile(filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum")))...)
}

// listed is a package, as go list prints it.
type listed struct {
	Dir                 string
	GoFiles, EmbedFiles []string
	Module              *struct{ Main bool }
}

// imports returns all packages that pkg/apis consists of and imports. It is no error if one can't
// be found: the generators report where it is imported.
func imports(root string) (packages []listed, err error) {
	command := exec.Command("go", "list", "-e", "-deps", "-json=Dir,GoFiles,EmbedFiles,Module", "./pkg/apis/...")
	command.Dir, command.Env = root, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the go command can't read the module: %s", strings.TrimSpace(stderr.String()))
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// copyPackage copies the files of a package that the go command compiles or embeds to another directory.
func copyPackage(p listed, to string) (err error) {
	for _, file := range append(p.GoFiles, p.EmbedFiles...) {
		copied := filepath.Join(to, file)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(copied), 0o750), copyFile(filepath.Join(p.Dir, file), copied))
	}
	return err
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
