// SPDX-License-Identifier: Apache-2.0

// Updating a project: a three-way merge of what has changed here.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	from      state      // that of the project
	kind      *addedKind // to add, or nil
	base      string     // the generated state that the project contains
}

// update generates the state of the project as it would be made now, with one kind more
// if kind is not nil, commits it on the branch of generated states, and merges this branch
// into the one that is checked out.
func update(ctx context.Context, root, dir string, kind *addedKind, out io.Writer) error {
	u := &updater{root: root, kind: kind, out: out}
	if err := u.check(ctx, dir); err != nil {
		return refusal{err}
	}
	commit, to := commitOf(ctx, root), u.from.request
	switch {
	case kind != nil:
		if err := u.checkKind(ctx); err != nil {
			return refusal{err}
		}
		to.Kinds = append(slices.Clip(to.Kinds), *kind)
	case u.from.Commit == commit:
		fmt.Fprintf(out, "%s is up to date with %.12s.\n", u.dir, commit)
		return nil
	}
	project, err := planFrom(ctx, root, to)
	if err != nil {
		return err
	}
	m := &maker{project: project, dir: u.dir, out: out}
	if err := m.make(ctx, step{"Committing the generated state", func(ctx context.Context) error { return u.commit(ctx, m, commit) }}); err != nil {
		return err
	}
	return u.merge(ctx)
}

// check finds out what the project was made from, and returns an error if it can't be
// updated.
func (u *updater) check(ctx context.Context, dir string) error {
	if dir == "" {
		return errors.New("-dir is missing: name the folder of the project to update")
	}
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("-dir=%s: must be the work tree of a git repository: %w", dir, err)
	}
	if u.dir, err = filepath.EvalSymlinks(strings.TrimSpace(top)); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil || dir != u.dir {
		return errors.Join(err, fmt.Errorf("-dir=%s: must be the root of its repository, %s", dir, u.dir))
	}
	text, err := git(ctx, dir, "show", "HEAD:"+stateFile)
	if err != nil {
		return fmt.Errorf("-dir=%s: has no %s, which says what newproject made it from: only projects that newproject made can be updated: %w", dir, stateFile, err)
	}
	if err := json.Unmarshal([]byte(text), &u.from); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	if changes, err := git(ctx, dir, "status", "--porcelain", "--untracked-files=no"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("-dir=%s: has uncommitted changes: commit or stash them first:\n%s", dir, changes))
	}
	if branch, _ := git(ctx, dir, "symbolic-ref", "--short", "HEAD"); strings.TrimSpace(branch) == stateBranch {
		return fmt.Errorf("-dir=%s: its branch %s, for generated states only, is checked out: check out the branch to update", dir, stateBranch)
	}
	if !knownToGit(ctx, dir) {
		return errors.New("git does not know your name, which the merge needs: set user.name and user.email")
	}
	return errors.Join(checkNames(ctx, u.from.request), u.checkSource(ctx), u.findBase(ctx))
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

// findBase finds the commit of the generated state that the project contains: on the
// branch of generated states, here or at a remote, or else in the project's history.
func (u *updater) findBase(ctx context.Context) error {
	refs, err := git(ctx, u.dir, "for-each-ref", "--format=%(refname)", "refs/heads/"+stateBranch, "refs/remotes/*/"+stateBranch)
	if err != nil {
		return err
	}
	for _, ref := range append(strings.Fields(refs), "HEAD") {
		commits, err := git(ctx, u.dir, "log", "--format=%H", ref, "--", stateFile)
		if err != nil {
			return err
		}
		if ref == "refs/heads/"+stateBranch && !isState(ctx, u.dir, ref) {
			return fmt.Errorf("the branch %s of %s does not end with a state that newproject generated: rename it", stateBranch, u.dir)
		}
		for commit := range strings.FieldsSeq(commits) {
			text, err := git(ctx, u.dir, "show", commit+":"+stateFile)
			var found state
			if err == nil && json.Unmarshal([]byte(text), &found) == nil && found.Commit == u.from.Commit && isState(ctx, u.dir, commit) {
				u.base = commit
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no commit with the state that newproject generated from %s: fetch its branch %s", u.dir, u.from.Commit, stateBranch)
}

// commit commits the generated state, on the branch of these. It does not touch the work
// tree.
func (u *updater) commit(ctx context.Context, m *maker, from string) error {
	folder, err := git(ctx, u.dir, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Update to %.12s\n\nThe state that newproject generates from the commit %s.", from, from)
	if u.kind != nil {
		message = fmt.Sprintf("Add the kind %s\n\nThe state that newproject generates from the commit %s.", u.kind.Kind, from)
	}
	commit, err := m.commitState(ctx, strings.TrimSpace(folder), message, u.base)
	if err == nil {
		_, err = git(ctx, u.dir, "update-ref", "refs/heads/"+stateBranch, commit)
	}
	return err
}

// merge merges the branch of generated states. If the project's history lacks the last
// state, because its merge was squashed or rebased, merge records first that the project
// contains it.
func (u *updater) merge(ctx context.Context) error {
	if _, err := git(ctx, u.dir, "merge-base", "--is-ancestor", u.base, "HEAD"); err != nil {
		message := fmt.Sprintf("Record that this contains the state that newproject generated from %.12s", u.from.Commit)
		if _, err := git(ctx, u.dir, "merge", "--quiet", "--strategy=ours", "--allow-unrelated-histories", "-m", message, u.base); err != nil {
			return fmt.Errorf("%w: %w", errMerge, err)
		}
	}
	printed, err := git(ctx, u.dir, "merge", "--no-edit", stateBranch)
	if err == nil {
		fmt.Fprintf(u.out, "Merged the branch %s.%s", stateBranch, afterMerge)
		return nil
	}
	u.takeGenerated(ctx)
	unmerged, listErr := git(ctx, u.dir, "diff", "--name-only", "--diff-filter=U")
	if listErr == nil && unmerged == "" {
		_, err = git(ctx, u.dir, "commit", "--no-edit")
	}
	if err == nil {
		fmt.Fprintf(u.out, "Merged the branch %s.%s", stateBranch, afterMerge)
		return nil
	}
	if listErr != nil || unmerged == "" {
		return fmt.Errorf("%w: %w", errMerge, err)
	}
	fmt.Fprint(u.out, printed)
	return fmt.Errorf("%w: your changes and those from here conflict in\n%s%s%s", errMerge, unmerged, conflicts, afterMerge)
}

// takeGenerated resolves the conflicts in generated files: it takes those of the generated
// state, because they are generated again after the merge. A file that one side has deleted
// stays a conflict.
func (u *updater) takeGenerated(ctx context.Context) {
	unmerged, err := git(ctx, u.dir, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(unmerged, "\x00"), "\x00") {
		if !matches(name, slices.Concat(made, []string{"artifacts/crd/Kustomization", "artifacts/chart/files"})) && filepath.Base(name) != "go.sum" {
			continue
		}
		if _, err := git(ctx, u.dir, "checkout", "--theirs", "--", name); err == nil {
			_, _ = git(ctx, u.dir, "add", "--", name) // else it stays a conflict
		}
	}
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
