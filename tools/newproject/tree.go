// SPDX-License-Identifier: Apache-2.0

// Reading this project's files.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// treeFile is a file of a project, at a path with slashes.
type treeFile struct {
	path string
	data []byte
	mode fs.FileMode
}

// isText reports whether a file is text, and can be searched for names.
func (f treeFile) isText() bool {
	return utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0
}

// readTree reads the files of this project: those that git tracks, or without git all
// except build output.
func readTree(root string) ([]treeFile, error) {
	paths, err := gitFiles(root)
	if err != nil {
		paths, err = walk(root)
	}
	if err != nil {
		return nil, err
	}
	var files []treeFile
	for _, name := range paths {
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not yet in the index
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is neither a file nor a folder: newproject can't copy it", name)
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		files = append(files, treeFile{name, data, info.Mode().Perm() | 0o600})
	}
	return files, nil
}

// gitFiles lists the files that git tracks.
func gitFiles(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return nil, err // the sources have no .git, but may be within another clone
	}
	out, err := git(context.Background(), root, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	slices.Sort(files)
	return slices.Compact(files), nil
}

// walk lists the files of a tree that is not a git repository.
func walk(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, full)
		name := filepath.ToSlash(relative)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "_output", ".golangci-cache", "testdata/rapid"}, name):
			return filepath.SkipDir
		case !entry.IsDir() && name != sample.Program && path.Ext(name) != ".test" && path.Ext(name) != ".out":
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// findRoot returns this project's root, given a folder in it.
func findRoot(folder string) (string, error) {
	for at := folder; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module "+sample.Module+"\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of %s: run newproject from there", folder, sample.Module)
		}
	}
}
