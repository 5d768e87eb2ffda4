// SPDX-License-Identifier: Apache-2.0

// The generators work in a copy of the sources. What the go command builds in the tree, it must
// build in the copy.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// copyImports copies the directories of root's module that pkg/apis imports, and makes the
// copy's go.mod name the same modules as the tree's: those in directories by absolute paths,
// among them the other modules of the user's workspace.
func copyImports(root, dir string) error {
	if err := refuseNestedModules(root); err != nil {
		return err
	}
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
	sums := []string{filepath.Join(root, "go.sum")}
	for _, p := range packages {
		switch at, _ := filepath.Rel(root, p.Dir); {
		case p.Module == nil || !p.Module.Main:
		case p.Module.Dir != root: // another module of the workspace
			errs = append(errs, mod.AddRequire(p.Module.Path, "v0.0.0"), mod.AddReplace(p.Module.Path, "", p.Module.Dir, ""))
			sums = append(sums, filepath.Join(p.Module.Dir, "go.sum"), os.Getenv("GOWORK")+".sum")
		case !strings.HasPrefix(at, filepath.Join("pkg", "apis")):
			errs = append(errs, copyPackage(p, filepath.Join(dir, at)))
		}
	}
	mod.Cleanup()
	text, err = mod.Format()
	return errors.Join(append(errs, err, os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600), join(sums, filepath.Join(dir, "go.sum")))...)
}

// refuseNestedModules returns an error if pkg/apis is not part of root's module.
func refuseNestedModules(root string) error {
	return filepath.WalkDir(filepath.Join(root, "pkg", "apis"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "go.mod" {
			at, _ := filepath.Rel(root, path)
			return fmt.Errorf("%s: pkg/apis must be in the same module as pkg/generated, for client-gen finds types of its own module only: delete this go.mod, and the lines about %s in the other", at, filepath.Dir(at))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("no API found: expected directories pkg/apis/GROUP/VERSION")
		}
		return err
	})
}

// listed is a package, as go list prints it.
type listed struct {
	Dir        string
	EmbedFiles []string
	Module     *struct {
		Path, Dir string
		Main      bool
	}
}

// imports returns all packages that pkg/apis consists of and imports. It is no error if one can't
// be found: the generators report where it is imported. A workspace without root is ignored.
func imports(root string) (packages []listed, err error) {
	for _, work := range []string{os.Getenv("GOWORK"), "off"} {
		command := exec.Command("go", "list", "-e", "-deps", "-json=Dir,EmbedFiles,Module", "./pkg/apis/...")
		command.Dir, command.Env = root, append(os.Environ(), "GOWORK="+work)
		var out, stderr bytes.Buffer
		command.Stdout, command.Stderr = &out, &stderr
		if err = command.Run(); err != nil {
			err = fmt.Errorf("the go command can't read the module: %s", strings.TrimSpace(stderr.String()))
			continue
		}
		for decoder := json.NewDecoder(&out); ; {
			var p listed
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			packages = append(packages, p)
		}
		if slices.ContainsFunc(packages, func(p listed) bool { return p.Module != nil && p.Module.Dir == root }) {
			return packages, nil
		}
	}
	return packages, err
}

// copyPackage copies the Go files of a package, and those that it embeds, to another directory.
func copyPackage(p listed, to string) error {
	files, err := fs.Glob(os.DirFS(p.Dir), "*.go")
	for _, file := range append(files, p.EmbedFiles...) {
		copied := filepath.Join(to, file)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(copied), 0o750), join([]string{filepath.Join(p.Dir, file)}, copied))
	}
	return err
}

// join writes the texts of files, as far as these exist, to one.
func join(files []string, to string) error {
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = append(all, text...)
	}
	return os.WriteFile(to, all, 0o600)
}
