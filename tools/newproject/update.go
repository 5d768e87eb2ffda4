// SPDX-License-Identifier: Apache-2.0

// Updating a project: git merges what has changed here.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stateFile is where a project records what it was made from.
const stateFile = ".newproject.json"

// stateBranch is the branch of a project whose commits are the states that newproject
// generated. The user's branch contains them, because each was merged into it.
const stateBranch = "newproject"

// state is the content of stateFile.
type state struct {
	Commit string `json:"commit"`
	request
}

// record returns the stateFile of a project that is made from a commit.
func (r request) record(commit string) (treeFile, error) {
	data, err := json.MarshalIndent(state{commit, r}, "", "  ")
	return treeFile{stateFile, append(data, '\n'), 0o644}, err
}

// errMerge means that git stopped during the merge.
var errMerge = errors.New("the merge is not complete")

// updater updates a project.
type updater struct {
	root, dir string
	out       io.Writer
	from      state // that of the project
}

// update generates the state of the project as it would be made now, with one kind more
// if kind is not nil, commits it on the branch of generated states, and merges this branch
// into the one that is checked out.
func update(ctx context.Context, root, dir string, kind *addedKind, out io.Writer) error {
	u := &updater{root: root, dir: dir, out: out}
	if err := u.check(ctx); err != nil {
		return refusal{err}
	}
	commit, to, subject := commitOf(ctx, root), u.from.request, "Update"
	switch {
	case kind != nil:
		if err := u.checkKind(ctx, *kind); err != nil {
			return refusal{err}
		}
		to.Kinds, subject = append(slices.Clip(to.Kinds), *kind), "Add the kind "+kind.Kind
	case u.from.Commit == commit:
		fmt.Fprintf(out, "%s is up to date with %.12s.\n", u.dir, commit)
		return nil
	}
	project, err := planFrom(ctx, root, to)
	if err != nil {
		return err
	}
	m := &maker{project: project, dir: u.dir, out: out}
	message := fmt.Sprintf("%s\n\nThe state that newproject generates from the commit %s.", subject, commit)
	if err := m.make(ctx, step{"Committing the generated state", func(ctx context.Context) error {
		for _, arguments := range [][]string{
			{"clone", "--quiet", "--bare", "--branch=" + stateBranch, u.dir, m.at + "/.git"},
			{"config", "core.bare", "false"},
		} {
			if _, err := git(ctx, m.at, arguments...); err != nil {
				return err
			}
		}
		if err := m.commitState(ctx, message); err != nil {
			return err
		}
		_, err := git(ctx, m.at, "push", "--quiet", "origin", stateBranch)
		return err
	}}); err != nil {
		return err
	}
	return u.merge(ctx)
}

// check finds out what the project was made from, and returns an error if it can't be
// updated.
func (u *updater) check(ctx context.Context) error {
	top, err := git(ctx, u.dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("-dir=%s: must be the work tree of a git repository: %w", u.dir, err)
	}
	u.dir = top
	text, err := git(ctx, u.dir, "show", "HEAD:"+stateFile)
	if err != nil {
		return fmt.Errorf("-dir=%s: has no %s, which says what newproject made it from: only projects that newproject made can be updated: %w", u.dir, stateFile, err)
	}
	if err := json.Unmarshal([]byte(text), &u.from); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(u.dir, stateFile), err)
	}
	if changes, err := git(ctx, u.dir, "status", "--porcelain", "--untracked-files=no"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("-dir=%s: has uncommitted changes: commit or stash them first:\n%s", u.dir, changes))
	}
	if !knownToGit(ctx, u.dir) {
		return errors.New("git does not know your name, which the merge needs: set user.name and user.email")
	}
	if branch, _ := git(ctx, u.dir, "symbolic-ref", "--short", "HEAD"); branch == stateBranch {
		return fmt.Errorf("-dir=%s: its branch %s, for generated states only, is checked out: check out the branch to update", u.dir, stateBranch)
	}
	return errors.Join(checkNames(u.from.request), u.checkSource(ctx), u.findStates(ctx))
}

// checkSource returns an error unless this clone has the commit that the project was made
// from, and newer ones.
func (u *updater) checkSource(ctx context.Context) error {
	commit := commitOf(ctx, u.root)
	old, _ := strings.CutSuffix(u.from.Commit, dirty)
	switch {
	case commit == "":
		return fmt.Errorf("%s is not a git clone: an update must come from a commit", u.root)
	case strings.HasSuffix(commit, dirty):
		return fmt.Errorf("%s has uncommitted changes: commit or stash them, because an update must come from a commit", u.root)
	case old == "":
		return nil // made from files without a repository
	}
	if _, err := git(ctx, u.root, "merge-base", "--is-ancestor", old, "HEAD"); err != nil {
		return fmt.Errorf("%s was made from the commit %s, which is not in the history of %s: fetch it (a shallow clone needs git fetch --unshallow), or check out a newer commit", u.dir, old, u.root)
	}
	return nil
}

// findStates returns an error if the project has no branch of generated states. One of a
// remote becomes one here.
func (u *updater) findStates(ctx context.Context) error {
	refs, err := git(ctx, u.dir, "for-each-ref", "--format=%(refname)", "refs/heads/"+stateBranch, "refs/remotes/*/"+stateBranch)
	ref, _, _ := strings.Cut(refs, "\n")
	if err != nil || ref == "" {
		return errors.Join(err, fmt.Errorf("%s has no branch %s with the state that newproject generated from %s: fetch it", u.dir, stateBranch, u.from.Commit))
	}
	if message, err := git(ctx, u.dir, "log", "-1", "--format=%B", ref); err != nil || !strings.Contains(message, stateMark) {
		return errors.Join(err, fmt.Errorf("the branch %s of %s does not end with a state that newproject generated: rename it", stateBranch, u.dir))
	}
	if strings.HasPrefix(ref, "refs/remotes/") {
		_, err = git(ctx, u.dir, "branch", "--no-track", stateBranch, ref)
	}
	return err
}

// merge merges the branch of generated states. If the project's history lacks the state
// that brought what HEAD records, because its merge was squashed or rebased, merge records
// first that the project contains it.
func (u *updater) merge(ctx context.Context) error {
	record, err := git(ctx, u.dir, "rev-parse", "HEAD:"+stateFile)
	if err != nil {
		return err
	}
	states, err := git(ctx, u.dir, "log", "--reverse", "--format=%H", "--find-object="+record, stateBranch)
	if err != nil {
		return err
	}
	base, _, _ := strings.Cut(states, "\n")
	if _, err := git(ctx, u.dir, "merge-base", "--is-ancestor", base, "HEAD"); err != nil {
		message := fmt.Sprintf("Record that this contains the state that newproject generated from %.12s", u.from.Commit)
		if _, err := git(ctx, u.dir, "merge", "--quiet", "--strategy=ours", "--allow-unrelated-histories", "-m", message, base); err != nil {
			return fmt.Errorf("%w: %w", errMerge, err)
		}
	}
	if _, err = git(ctx, u.dir, "merge", "--no-edit", stateBranch); err != nil {
		unmerged := u.takeGenerated(ctx)
		if len(unmerged) > 0 {
			return fmt.Errorf("%w: your changes and those from here conflict in\n%s\n%s%s", errMerge, strings.Join(unmerged, "\n"), conflicts, afterMerge)
		}
		if _, commitErr := git(ctx, u.dir, "commit", "--no-edit"); commitErr != nil {
			return fmt.Errorf("%w: %w\n%w", errMerge, err, commitErr)
		}
	}
	fmt.Fprintf(u.out, "Merged the branch %s.%s", stateBranch, afterMerge)
	return nil
}

// takeGenerated resolves the conflicts in generated files: it takes those of the generated
// state, because they are generated again after the merge. It returns the files that stay
// in conflict, also a generated one that one side has deleted.
func (u *updater) takeGenerated(ctx context.Context) (left []string) {
	unmerged, _ := git(ctx, u.dir, "diff", "--name-only", "--diff-filter=U") // the commit fails, too
	generated := append([]string{"artifacts/crd/Kustomization", "artifacts/chart/files"}, made...)
	for name := range strings.Lines(unmerged) {
		name = strings.TrimSpace(name)
		if matches(name, generated) || filepath.Base(name) == "go.sum" {
			if _, err := git(ctx, u.dir, "checkout", "--theirs", "--", name); err == nil {
				if _, err := git(ctx, u.dir, "add", "--", name); err == nil {
					continue
				}
			}
		}
		left = append(left, name)
	}
	return left
}

// conflicts is printed if there are any.
const conflicts = `
Edit these files and git add them; git rm those that you have deleted. Those of generated files and of go.sum are
resolved: the commands below make them again. Then git commit. git merge --abort ends the merge; newproject can begin it
again.
`

// afterMerge is printed at the end.
const afterMerge = `
Generated files were merged like others. Make them again, and test the result:
  hack/update-codegen.sh
  go mod tidy
  make update-policy     (the policies of the children that you have added)
  make chart             (not in a lean project)
  make test
`

// git runs git in a folder, and returns what it prints, without the last line's end.
func git(ctx context.Context, dir string, arguments ...string) (string, error) {
	return output(ctx, dir, []string{"LC_ALL=C"}, append([]string{"git"}, arguments...)...)
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
