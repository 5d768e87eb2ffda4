// SPDX-License-Identifier: Apache-2.0

// Updating a project: its library is replaced, and the changes of the loop are merged.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// errMerge means that the project's changes of the loop conflict with the update's.
var errMerge = errors.New("the update is complete, except for conflicts with your changes: look for <<<<<<<, edit, and commit")

// open reads a project's state. It must be a git repository without uncommitted changes, so that a
// failure can be undone.
func open(ctx context.Context, root, flag, dir string) (*project, error) {
	top, err := output(ctx, dir, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s=%s: must be the work tree of a git repository: %w", flag, dir, err)
	}
	if changes, err := output(ctx, top, "git", "status", "--porcelain"); err != nil || changes != "" {
		return nil, errors.Join(err, fmt.Errorf("%s=%s: has uncommitted or untracked files: commit, stash or ignore them first:\n%s", flag, top, changes))
	}
	text, err := os.ReadFile(filepath.Join(top, stateFile))
	if err != nil {
		return nil, fmt.Errorf("%s=%s: newproject did not generate this: %w", flag, top, err)
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(top, stateFile), err)
	}
	if r.Library == "" {
		return nil, fmt.Errorf("%s=%s: an earlier newproject generated this, with a copy of everything: tools/newproject/README.md shows how to move it", flag, top)
	}
	return &project{names: deriveNames(r), request: r, root: root, dir: top}, checkNames(r)
}

// undo undoes all changes of a step that failed.
func (p *project) undo(err error) error {
	ctx := context.Background() // also after an interrupt
	_, resetErr := output(ctx, p.dir, "git", "reset", "--quiet", "--hard")
	_, cleanErr := output(ctx, p.dir, "git", "clean", "--quiet", "-fd")
	return errors.Join(err, resetErr, cleanErr)
}

// update replaces the library of a project, and merges the changes of the loop since the earlier one.
func update(ctx context.Context, root, dir, to string, out io.Writer) error {
	p, err := open(ctx, root, "-dir", dir)
	if err == nil && to == "" && p.request.Library != copyDir {
		err = fmt.Errorf("-library is missing: %s uses %s: choose the version to update to", p.dir, p.request.Library)
	}
	if err := errors.Join(err, checkLibrary(to)); err != nil {
		return refusal{err}
	}
	if err := p.command("hack/library.sh", "check")(ctx); err != nil {
		return refusal{err}
	}
	base, err := p.loop(ctx)
	if err != nil {
		return err
	}
	if p.request.Library = to; to == "" {
		p.request.Library = copyDir
	}
	var conflicts []string
	err = steps(ctx, out, step{"Replacing the library", p.setLibrary},
		step{"Merging the loop", func(ctx context.Context) error {
			conflicts, err = p.merge(ctx, base)
			return errors.Join(err, p.record())
		}},
		step{"Tidying the module", p.command("go", "mod", "tidy")})
	if err != nil {
		return p.undo(err)
	}
	if len(conflicts) > 0 {
		return fmt.Errorf("%w: %s", errMerge, strings.Join(conflicts, ", "))
	}
	say := "has the new library, uncommitted. Run make test there, and commit"
	if changes, err := output(ctx, p.dir, "git", "status", "--porcelain"); err == nil && changes == "" {
		say = "has this library already"
	}
	fmt.Fprintf(out, "%s %s.\n", p.dir, say)
	return nil
}

// record writes the state of a project.
func (p *project) record() error {
	text, err := json.MarshalIndent(p.request, "", "  ")
	return errors.Join(err, p.put(stateFile, append(text, '\n')))
}

// merge merges the changes of the loop since base into the project's loop, and returns the files that
// are in conflict. A file that is missing counts as empty.
func (p *project) merge(ctx context.Context, base map[string][]byte) (conflicts []string, err error) {
	loop, err := p.loop(ctx)
	tmp, tmpErr := os.MkdirTemp("", "newproject-")
	defer os.RemoveAll(tmp)
	if err := errors.Join(err, tmpErr); err != nil {
		return nil, err
	}
	merge := []string{"git", "merge-file", "-L", "yours", "-L", "base", "-L", "library", "own", "base", "new"}
	for name := range base {
		loop[name] = bytes.Clone(loop[name]) // nil if it is gone
	}
	for name, text := range loop {
		own, _ := os.ReadFile(filepath.Join(p.dir, name)) // the user may have deleted it
		if bytes.Equal(base[name], text) {
			continue
		}
		files := &project{dir: tmp}
		if err := errors.Join(files.put("own", own), files.put("base", base[name]), files.put("new", text)); err != nil {
			return nil, err
		}
		if _, err := output(ctx, tmp, merge...); err != nil { // the number of conflicts
			conflicts = append(conflicts, name)
		}
		merged, err := os.ReadFile(filepath.Join(tmp, "own"))
		if err == nil && len(merged) > 0 {
			err = p.put(name, merged)
		} else if len(own) > 0 {
			err = errors.Join(err, os.Remove(filepath.Join(p.dir, name)))
		}
		if err != nil {
			return nil, err
		}
	}
	return conflicts, nil
}

// checkLibrary returns an error unless a module is given with a version, or not at all.
func checkLibrary(module string) error {
	if at, version, ok := strings.Cut(module, "@"); module != "" && (!ok || !modulePath.MatchString(at) || !strings.HasPrefix(version, "v")) {
		return fmt.Errorf("-library=%s: must be the path of a module and a version, such as github.com/acme/sample-controller@v0.4.0", module)
	}
	return nil
}
