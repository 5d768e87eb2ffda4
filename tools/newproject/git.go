// SPDX-License-Identifier: Apache-2.0

// Running git.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, dir string, arguments ...string) (string, error) {
	return gitWith(ctx, dir, nil, arguments...)
}

// gitWith runs git with additional variables of the environment.
func gitWith(ctx context.Context, dir string, environment []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.Env = dir, append(append(gitEnvironment(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"), environment...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s%s", strings.Join(arguments, " "), err, out, errors.String())
	}
	return string(out), err
}

// gitEnvironment returns the environment without the variables that make git use another
// repository, as in a hook.
func gitEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_DIR=") || strings.HasPrefix(variable, "GIT_WORK_TREE=") ||
			strings.HasPrefix(variable, "GIT_INDEX_FILE=") || strings.HasPrefix(variable, "GIT_PREFIX=")
	})
}

// knownToGit reports whether git has a name and an address to commit with.
func knownToGit(ctx context.Context, dir string) bool {
	_, err := git(ctx, dir, "var", "GIT_AUTHOR_IDENT")
	if err == nil {
		_, err = git(ctx, dir, "var", "GIT_COMMITTER_IDENT")
	}
	return err == nil
}

// author returns the options of git that name newproject as the author, if git does not
// know the user's name.
func author(ctx context.Context, dir string) []string {
	if knownToGit(ctx, dir) {
		return nil
	}
	return []string{"-c", "user.name=newproject", "-c", "user.email=newproject@localhost"}
}

// commitOf returns the commit of a clone, with -dirty at the end if files that git tracks
// have changed. It is empty if the folder is not a clone.
func commitOf(ctx context.Context, root string) string {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return ""
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	changes, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	if commit = strings.TrimSpace(commit); changes != "" || err != nil {
		commit += dirty
	}
	return commit
}

const dirty = "-dirty"
