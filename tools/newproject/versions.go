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
	"path"
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
func (a *versionAdder) check(ctx context.Context) (err error) {
	if a.dir, err = cleanWorkTree(ctx, "-into", a.dir); err != nil {
		return err
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
	group, pack := regexp.QuoteMeta(a.Group), regexp.QuoteMeta(a.Package)
	before := fmt.Sprintf(`(^|[^/\w]|%s/|\b%s[/.]|\b(?:sample|apply|%[2]s(?:api)?))`, group, pack)
	return []replacement{
		{regexp.MustCompile(before + a.Version + `\b`), "${1}" + a.to},
		{regexp.MustCompile(`(` + a.GoGroup + `(?:\(\)\.)?)` + capitalized(a.Version) + `(\b|[A-Z])`), "${1}" + capitalized(a.to) + "${2}"},
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
	files, err := readTree(ctx, a.dir)
	if err != nil {
		return err
	}
	all := a.replacements()
	for _, file := range files {
		if !file.mode.IsRegular() || !file.isText() || path.Base(file.path) == "go.sum" || matches(file.path, otherVersions) {
			continue
		}
		renamed := replaceAll(string(file.data), all)
		if renamed == string(file.data) {
			continue
		}
		if err := os.WriteFile(filepath.Join(a.dir, file.path), []byte(renamed), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// keepOld gets back the types of the old version as they were, without the methods for the
// sync loop, admits the old version's program, which may run beside the new one, and declares
// that both versions have the same shape.
func (a *versionAdder) keepOld(ctx context.Context) error {
	directory := path.Join("pkg/apis", a.Package, a.Version)
	if _, err := git(ctx, a.dir, "checkout", "HEAD", "--", directory, ":!*/zz_generated.*", ":!*_test.go", ":!*owner.go"); err != nil {
		return err
	}
	const generated = "// +genclient\n"
	deprecated := "// +kubebuilder:storageversion\n" +
		`// +kubebuilder:deprecatedversion:warning="` + a.Group + "/" + a.Version + " is deprecated; use " + a.Group + "/" + a.to + "\"\n"
	return errors.Join(
		replaceIn(filepath.Join(a.dir, directory, "*.go"), generated, generated+deprecated),
		replaceIn(filepath.Join(a.dir, "artifacts/deploy/permissions/*.yaml"),
			fmt.Sprintf("['%s/%s']", a.Group, a.to), fmt.Sprintf("['%[1]s/%[2]s', '%[1]s/%[3]s']", a.Group, a.to, a.Version)),
		a.declare())
}

// replaceIn replaces a text in the files that match a pattern.
func replaceIn(pattern, old, replacement string) error {
	files, err := filepath.Glob(pattern)
	for _, name := range files {
		text, readErr := os.ReadFile(name)
		if readErr != nil {
			return readErr
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o644); err != nil {
			return err
		}
	}
	return err
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
