// SPDX-License-Identifier: Apache-2.0

// Adding a version of the API: the code goes over to it, and the old one stays for clients.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// versionAdder adds a version to a project, or to this one, in its work tree.
type versionAdder struct {
	names

	dir, to string
	out     io.Writer
	// made is the record of the project if newproject made it, or nil.
	made *state
}

// addVersion adds a version to the project in a directory. The types of the new version are
// those of the old one, under which they stay, too; the program and its tests use the new
// one. It leaves the changes uncommitted.
func addVersion(ctx context.Context, dir, to string, out io.Writer) error {
	a := &versionAdder{names: sample, dir: dir, to: to, out: out}
	if err := a.check(ctx); err != nil {
		return refusal{err}
	}
	fmt.Fprintf(out, "Renaming %s to %s ... ", a.Version, to)
	if err := a.rewrite(ctx); err != nil {
		return err
	}
	if err := a.keepOld(ctx); err != nil {
		return err
	}
	fmt.Fprint(out, "\nGenerating the clients of both versions ... ")
	if _, err := output(ctx, dir, nil, filepath.Join(dir, "hack/update-codegen.sh")); err != nil {
		return err
	}
	fmt.Fprint(out, "\nCompiling the project and its tests ... ")
	if _, err := output(ctx, dir, nil, "go", "list", "-export", "-test", "-f=", "./..."); err != nil {
		return err
	}
	if err := a.commit(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s serves %s and %s. tools/migrate/README.md says how to change the shape of %[3]s.\n", a.dir, a.Version, to)
	return nil
}

// check finds out the names of the project, and whether newproject made it.
func (a *versionAdder) check(ctx context.Context) error {
	top, err := git(ctx, a.dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("-into=%s: must be the work tree of a git repository: %w", a.dir, err)
	}
	a.dir = top
	if changes, err := git(ctx, a.dir, "status", "--porcelain", "--untracked-files=no"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("-into=%s: has uncommitted changes: commit or stash them first:\n%s", a.dir, changes))
	}
	if text, err := git(ctx, a.dir, "show", "HEAD:"+stateFile); err == nil {
		if err := json.Unmarshal([]byte(text), &a.made); err != nil {
			return fmt.Errorf("%s: %w", stateFile, err)
		}
		a.names = deriveNames(a.made.request)
	}
	versions, err := filepath.Glob(filepath.Join(a.dir, "pkg/apis", a.Package, "v[0-9]*"))
	switch {
	case err != nil:
		return err
	case len(versions) != 1 || filepath.Base(versions[0]) != a.Version:
		return fmt.Errorf("-into=%s: has %d versions below pkg/apis/%s: a second one can be added to a project that has one, %s", a.dir, len(versions), a.Package, a.Version)
	case !apiVersion.MatchString(a.to) || version.CompareKubeAwareVersionStrings(a.to, a.Version) <= 0:
		return fmt.Errorf("-add-version=%s: must be a newer version than %s, such as v1beta1", a.to, a.Version)
	}
	return nil
}

// replacements returns what makes the code go over to the new version. After a slash, a
// version may be another group's.
func (a *versionAdder) replacements() []replacement {
	from, to, quote := regexp.QuoteMeta(a.Version), a.to, regexp.QuoteMeta
	return []replacement{
		{regexp.MustCompile(quote(a.Group) + "/" + from + `\b`), a.Group + "/" + to},
		{regexp.MustCompile(`\b` + quote(a.Package) + `([/.])` + from + `\b`), a.Package + "${1}" + to},
		{regexp.MustCompile(quote(a.GoGroup) + `((?:\(\)\.)?)` + capitalized(from) + `\b`), a.GoGroup + "${1}" + capitalized(to)},
		{regexp.MustCompile(quote(a.GoGroup) + `((?:\(\)\.)?)` + capitalized(from) + `([A-Z])`), a.GoGroup + "${1}" + capitalized(to) + "${2}"},
		{regexp.MustCompile(`\b(sample|apply|` + quote(a.Package) + `(?:api)?)` + from + `\b`), "${1}" + to},
		{regexp.MustCompile(`(^|[^/\w])` + from + `\b`), "${1}" + to},
	}
}

// otherVersions are files whose versions are not the project's: examples, and upstream's API.
var otherVersions = []string{stateFile, "tools/newproject", "tools/migrate", "test/thirdparty", "test/bench/contender/upstream*"}

// rewrite renames the version in all files that git tracks.
func (a *versionAdder) rewrite(ctx context.Context) error {
	api := filepath.Join("pkg/apis", a.Package)
	if _, err := git(ctx, a.dir, "mv", filepath.Join(api, a.Version), filepath.Join(api, a.to)); err != nil {
		return err
	}
	files, err := git(ctx, a.dir, "ls-files", "-z")
	if err != nil {
		return err
	}
	all := a.replacements()
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		path := filepath.Join(a.dir, name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || filepath.Base(name) == "go.sum" || matches(name, otherVersions) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file := treeFile{name, text, info.Mode()}
		if !file.isText() {
			continue
		}
		renamed := replaceAll(string(text), all)
		if strings.HasPrefix(name, "artifacts/deploy/permissions/") { // the programs of both releases may be running
			both := fmt.Sprintf("['%s/%s', '%[1]s/%s']", a.Group, a.to, a.Version)
			renamed = strings.ReplaceAll(renamed, fmt.Sprintf("['%s/%s']", a.Group, a.to), both)
		}
		if renamed != string(text) {
			if err := os.WriteFile(path, []byte(renamed), info.Mode()); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepOld writes the types of the old version as they were, without the methods for the
// sync loop, and declares that both versions have the same shape.
func (a *versionAdder) keepOld(ctx context.Context) error {
	directory := filepath.Join("pkg/apis", a.Package, a.Version)
	files, err := git(ctx, a.dir, "ls-tree", "-r", "--name-only", "HEAD", directory+"/")
	if err != nil {
		return err
	}
	for name := range strings.Lines(files) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(filepath.Base(name), "zz_generated.") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "owner.go") {
			continue
		}
		text, err := git(ctx, a.dir, "show", "HEAD:"+name)
		if err != nil {
			return err
		}
		text = strings.ReplaceAll(text, "// +genclient\n", "// +genclient\n// +kubebuilder:storageversion\n"+
			`// +kubebuilder:deprecatedversion:warning="`+a.Group+"/"+a.Version+" is deprecated; use "+a.Group+"/"+a.to+"\"\n")
		if err := os.MkdirAll(filepath.Join(a.dir, directory), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return a.declare()
}

// declare writes the file that declares what differs between the versions: nothing yet.
func (a *versionAdder) declare() error {
	crds, err := filepath.Glob(filepath.Join(a.dir, "artifacts/crd", a.Group+"_*.yaml"))
	if err != nil {
		return err
	}
	documents := make([]string, len(crds))
	for i, crd := range crds {
		plural := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(crd), a.Group+"_"), ".yaml")
		documents[i] = fmt.Sprintf("# What differs between the versions: see tools/migrate/README.md.\ncrd: %s.%s\nold: %s\nnew: %s\n", plural, a.Group, a.Version, a.to)
	}
	return os.WriteFile(filepath.Join(a.dir, "pkg/apis", a.Package, "versions.yaml"), []byte(strings.Join(documents, "---\n")), 0o644)
}

// commit commits the work tree. In a project that newproject made, the branch of generated
// states goes over to the new version, too, so that an update finds it there.
func (a *versionAdder) commit(ctx context.Context) error {
	message := fmt.Sprintf("Add the version %s, of the same shape as %s", a.to, a.Version)
	if a.made == nil {
		return a.commitAll(ctx, message)
	}
	if err := errors.Join(a.record(), a.commitAll(ctx, message)); err != nil {
		return err
	}
	states := *a
	var err error
	if states.dir, err = os.MkdirTemp("", "newproject-"); err != nil {
		return err
	}
	defer os.RemoveAll(states.dir)
	if _, err := git(ctx, a.dir, "worktree", "add", "--quiet", "--force", states.dir, stateBranch); err != nil {
		return err
	}
	err = errors.Join(states.rewrite(ctx), states.record(), states.commitAll(ctx, "The state that newproject generated, with the version "+a.to))
	if _, removed := git(ctx, a.dir, "worktree", "remove", "--force", states.dir); err != nil || removed != nil {
		return errors.Join(err, removed)
	}
	_, err = git(ctx, a.dir, "merge", "--quiet", "--strategy=ours", "--no-edit", stateBranch)
	return err
}

func (a *versionAdder) commitAll(ctx context.Context, message string) error {
	if _, err := git(ctx, a.dir, "add", "--all"); err != nil {
		return err
	}
	_, err := git(ctx, a.dir, "commit", "--quiet", "--no-verify", "--message", message)
	return err
}

// record writes the new version into the file with the project's names.
func (a *versionAdder) record() error {
	a.made.Version = a.to
	file, err := a.made.record(a.made.Commit)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, stateFile), file.data, 0o644)
}
