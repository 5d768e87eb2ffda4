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
	if commit = strings.TrimSpace(commit); changes != "" || err != nil {
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

// commitState commits the files of the project, and returns the commit.
func (m *maker) commitState(ctx context.Context, repository, message string, parents ...string) (string, error) {
	environment := []string{"GIT_DIR=" + repository, "GIT_WORK_TREE=" + m.at, "GIT_INDEX_FILE=" + filepath.Join(m.tmp, "index")}
	if _, err := gitWith(ctx, m.at, environment, "add", "--all"); err != nil {
		return "", err
	}
	tree, err := gitWith(ctx, m.at, environment, "write-tree")
	if err != nil {
		return "", err
	}
	tree = strings.TrimSpace(tree)
	var arguments []string
	if !knownToGit(ctx, filepath.Dir(repository)) {
		arguments = []string{"-c", "user.name=newproject", "-c", "user.email=newproject@localhost"}
	}
	arguments = append(arguments, "commit-tree", tree, "-m", message, "-m", treeTrailer+tree)
	for _, parent := range parents {
		arguments = append(arguments, "-p", parent)
	}
	commit, err := gitWith(ctx, m.at, environment, arguments...)
	return strings.TrimSpace(commit), err
}
