// SPDX-License-Identifier: Apache-2.0

// The module of a controller that others publish: downloaded as it is, and built as its authors
// build it.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// moduleVariable is the folder of the module, at the beginning of a path in the settings.
const moduleVariable = "$(MODULE)"

// useModule downloads the module of the settings, replaces its variable, and builds the program
// if that is one of its packages.
func (r *runner) useModule(ctx context.Context) error {
	if r.settings.Module == "" {
		return nil
	}
	r.progress("Downloading %s", r.settings.Module)
	// In a folder without a go.mod, so that no other module counts.
	output, err := goCommand(ctx, r.folder, "mod", "download", "-json", r.settings.Module)
	var module struct{ Path, Dir, GoMod, Error string }
	if json.Unmarshal(output, &module) != nil || module.Dir == "" {
		return fmt.Errorf("downloading %s: %w %s", r.settings.Module, err, module.Error)
	}
	for _, paths := range [][]string{r.crds, r.objects, r.settings.Manifests} {
		for i := range paths {
			if rest, ok := strings.CutPrefix(paths[i], moduleVariable); ok {
				paths[i] = module.Dir + rest
			}
		}
	}
	rest, ok := strings.CutPrefix(r.args[0], moduleVariable)
	if !ok {
		return nil
	}
	r.progress("Building %s", module.Path+rest)
	goMod, err := r.withoutFolders(ctx, module.Dir)
	if err != nil {
		return err
	}
	if r.args[0], err = filepath.Abs(filepath.Join("bin", "conform", path.Base(module.Path+rest))); err != nil {
		return err
	}
	_, err = goCommand(ctx, module.Dir, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-mod=mod", "-modfile="+goMod, "-o", r.args[0], "."+rest)
	return err
}

// withoutFolders copies the go.mod and go.sum of a module, without replacements by folders: what
// they contain are modules of their own, so they are in the module cache as others are.
func (r *runner) withoutFolders(ctx context.Context, dir string) (goMod string, err error) {
	goMod = filepath.Join(r.folder, "module.mod")
	for from, to := range map[string]string{"go.mod": goMod, "go.sum": filepath.Join(r.folder, "module.sum")} {
		content, err := os.ReadFile(filepath.Join(dir, from))
		if err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // without requirements, there is no go.sum
			return "", err
		}
	}
	output, err := goCommand(ctx, r.folder, "mod", "edit", "-json", goMod)
	if err != nil {
		return "", err
	}
	var content struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(output, &content); err != nil {
		return "", err
	}
	for _, replace := range content.Replace {
		if replace.New.Version != "" {
			continue
		}
		if _, err := goCommand(ctx, r.folder, "mod", "edit", "-dropreplace="+replace.Old.Path, goMod); err != nil {
			return "", err
		}
	}
	return goMod, nil
}

// goCommand runs the go command in a folder, and returns what it prints.
func goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = folder, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return output, err
}
