// SPDX-License-Identifier: Apache-2.0

// Tests of updates, with a small project instead of this one.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// expect compares files of the project; "" means that there is none.
func (f *fixture) expect(files map[string]string) {
	f.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(f.project, name))
		if err != nil && want != "" || string(got) != want {
			f.Errorf("%s: got %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	f.expectBeside("a project, source")
}

// change changes the source in several ways, and the project by hand.
func (f *fixture) change() {
	f.write(f.source, "both.txt", strings.Replace(lines, "first", "first, fixed for each Foo", 1))
	f.write(f.source, "foo.txt", "two\n")
	f.write(f.source, generatedFile, "from here\n")
	f.git(f.source, "rm", "--quiet", "deleted.txt")
	f.git(f.source, "mv", "before.txt", "after.txt")
	f.commit(f.source)
	f.write(f.project, "both.txt", strings.NewReplacer("last", "last, by hand", "Foo", "Widget").Replace(lines))
	f.write(f.project, "mine.txt", "mine\n")
	f.write(f.project, generatedFile, "by hand\n")
	f.commit(f.project)
}

// generatedFile is a file whose conflicts newproject resolves.
const generatedFile = "artifacts/chart/files/file.txt"

func (f *fixture) expectMerged() {
	f.Helper()
	f.expect(map[string]string{
		"both.txt":   "first, fixed for each Widget\n\n\n\n\nmiddle of the Widget\n\n\n\n\nlast, by hand\n",
		"widget.txt": "two\n", "deleted.txt": "", "before.txt": "", "mine.txt": "mine\n",
		"after.txt": strings.Repeat("a long text about a Widget\n", 9), generatedFile: "from here\n",
	})
	if changes := f.git(f.project, "status", "--porcelain"); changes != "" {
		f.Errorf("the work tree has changes:\n%s", changes)
	}
	f.expectUpToDate()
}

func (f *fixture) expectUpToDate() {
	f.Helper()
	if out := f.mustRun("-update", "-dir="+f.project); !strings.Contains(out, "is up to date") {
		f.Errorf("the next update prints\n%s", out)
	}
}

func TestUpdate(t *testing.T) {
	f := newFixture(t)
	f.expectUpToDate()
	f.change()
	if out := f.mustRun("-update", "-dir="+f.project); !strings.Contains(out, "hack/update-codegen.sh") {
		t.Errorf("it does not say what to do next:\n%s", out)
	}
	f.expectMerged()
	// The second update merges from the state of the first.
	f.write(f.source, "foo.txt", "three\n")
	f.commit(f.source)
	f.mustRun("-update", "-dir="+f.project)
	f.expect(map[string]string{"widget.txt": "three\n", "mine.txt": "mine\n"})
}

// TestUpdateFindsTheGeneratedState updates repositories whose history was rewritten.
func TestUpdateFindsTheGeneratedState(t *testing.T) {
	for say, prepare := range map[string]func(f *fixture){
		"a clone": func(f *fixture) {
			f.git(filepath.Dir(f.project), "clone", "--quiet", "--bare", "a project", "bare")
			f.git(filepath.Dir(f.project), "clone", "--quiet", "bare", "clone")
			beside := filepath.Dir(f.project)
			f.remove(f.project, "")
			f.remove(beside, "bare")
			if err := os.Rename(filepath.Join(beside, "clone"), f.project); err != nil {
				f.Fatal(err)
			}
		},
		"squashed": func(f *fixture) {
			f.git(f.project, "checkout", "--quiet", "--orphan", "squashed")
			f.git(f.project, "commit", "--quiet", "--message=all of it")
		},
		"an update that was begun": func(f *fixture) {
			f.mustRun("-update", "-dir="+f.project)
			f.git(f.project, "reset", "--quiet", "--hard", "HEAD~1")
		},
	} {
		t.Run(say, func(t *testing.T) {
			f := newFixture(t)
			f.change()
			prepare(f)
			f.mustRun("-update", "-dir="+f.project)
			f.expectMerged()
		})
	}
}

func TestUpdateWithAConflict(t *testing.T) {
	f := newFixture(t)
	f.change()
	f.write(f.project, "widget.txt", "by hand\n")
	f.commit(f.project)
	before := f.git(f.project, "rev-parse", "HEAD")
	_, err := f.run("-update", "-dir="+f.project)
	for _, want := range []string{"widget.txt", "git add", "git merge --abort", "hack/update-codegen.sh", "go mod tidy"} {
		if !errors.Is(err, errMerge) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	f.git(f.project, "merge", "--abort")
	if _, err := f.run("-update", "-dir="+f.project); !errors.Is(err, errMerge) || f.git(f.project, "rev-parse", "HEAD") != before {
		t.Errorf("the second attempt: got %v", err)
	}
	f.write(f.project, "widget.txt", "both\n")
	f.commit(f.project)
	f.expect(map[string]string{"widget.txt": "both\n", "mine.txt": "mine\n", "deleted.txt": ""})
	f.expectUpToDate()
}

func TestUpdateRefusals(t *testing.T) {
	for say, test := range map[string]struct {
		prepare func(f *fixture)
		want    string
	}{
		"uncommitted changes":               {func(f *fixture) { f.write(f.project, "widget.txt", "x\n") }, "has uncommitted changes"},
		"uncommitted changes of the source": {func(f *fixture) { f.write(f.source, "foo.txt", "x\n") }, "source has uncommitted changes"},
		"a source without a repository":     {func(f *fixture) { f.remove(f.source, ".git") }, "is not a git clone"},
		"no repository":                     {func(f *fixture) { f.remove(f.project, ".git") }, "must be the work tree of a git repository"},
		"another project": {func(f *fixture) {
			f.git(f.project, "rm", "--quiet", stateFile)
			f.commit(f.project)
		}, "has no .newproject.json"},
		"an unknown commit": {func(f *fixture) {
			f.remove(f.source, ".git")
			f.git(f.source, "init", "--quiet")
			f.write(f.source, "foo.txt", "another history\n")
			f.commit(f.source)
		}, "which is not in the history of"},
		"an older commit": {func(f *fixture) {
			f.mustRun("-update", "-dir="+f.project)
			f.git(f.source, "checkout", "--quiet", "HEAD~1")
		}, "which is not in the history of"},
		"the branch of generated states": {func(f *fixture) { f.git(f.project, "checkout", "--quiet", stateBranch) }, "is checked out"},
		"another branch of that name": {func(f *fixture) {
			f.git(f.project, "branch", "--force", stateBranch, "HEAD")
		}, "does not end with a state that newproject generated"},
		"no branch": {func(f *fixture) { f.git(f.project, "branch", "-D", stateBranch) }, "has no branch newproject with the state"},
	} {
		t.Run(say, func(t *testing.T) {
			f := newFixture(t)
			f.change()
			test.prepare(f)
			_, err := f.run("-update", "-dir="+f.project)
			if !errors.As(err, new(refusal)) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func (f *fixture) remove(dir, name string) {
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		f.Fatal(err)
	}
}
