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

// treeTrailer precedes the tree in the message of a commit of a generated state, so that
// an amended commit is not taken for one.
const treeTrailer = "Newproject-Tree: "

// isState reports whether a commit is a generated state.
func isState(ctx context.Context, dir, commit string) bool {
	text, err := git(ctx, dir, "log", "-1", "--format=%T%n%B", commit)
	tree, message, _ := strings.Cut(text, "\n")
	return err == nil && strings.Contains(message, treeTrailer+tree)
}

// commitFiles makes the project a repository whose first commit, with all files, is that of
// the generated state. It returns the tree.
func (m *maker) commitFiles(ctx context.Context, message string) (tree string, err error) {
	for _, arguments := range [][]string{{"-c", "init.defaultBranch=main", "init", "--quiet"}, {"add", "--all"}} {
		if _, err := git(ctx, m.at, arguments...); err != nil {
			return "", err
		}
	}
	if tree, err = git(ctx, m.at, "write-tree"); err != nil {
		return "", err
	}
	return tree, commitState(ctx, m.at, tree, message)
}

// commitState commits a tree of a generated state on the branch of these. It does not touch
// the work tree.
func commitState(ctx context.Context, dir, tree, message string, more ...string) error {
	arguments := append([]string{"commit-tree", tree, "-m", message, "-m", treeTrailer + tree}, more...)
	if !knownToGit(ctx, dir) {
		arguments = append([]string{"-c", "user.name=newproject", "-c", "user.email=newproject@localhost"}, arguments...)
	}
	commit, err := git(ctx, dir, arguments...)
	if err == nil {
		_, err = git(ctx, dir, "update-ref", "refs/heads/"+stateBranch, commit)
	}
	return err
}
