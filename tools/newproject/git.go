// SPDX-License-Identifier: Apache-2.0

// Calls of git.

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

// git runs git in a folder, and returns what it prints, without the last line's end.
func git(ctx context.Context, dir string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.Env = dir, append(gitEnvironment(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s%s", strings.Join(arguments, " "), err, out, errors.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// gitEnvironment returns the environment without the variables that make git use another
// repository, as in a hook.
func gitEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
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
	if changes != "" || err != nil {
		commit += dirty
	}
	return commit
}

const dirty = "-dirty"

// stateMark is in the message of each commit of a generated state, in that of older versions
// of newproject as the beginning of a trailer.
const stateMark = "ewproject"

// commitState commits the files of the project to the branch of generated states, of which
// its folder is a repository.
func (m *maker) commitState(ctx context.Context, message string) error {
	if _, err := git(ctx, m.at, "add", "--all"); err != nil {
		return err
	}
	arguments := []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "commit.gpgSign=false", "commit", "--quiet", "--allow-empty", "--message", message}
	if !knownToGit(ctx, m.at) {
		arguments = append([]string{"-c", "user.name=newproject", "-c", "user.email=newproject@localhost"}, arguments...)
	}
	_, err := git(ctx, m.at, arguments...)
	return err
}
