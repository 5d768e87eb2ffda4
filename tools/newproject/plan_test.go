//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of plans. They find in seconds what tests of whole projects find in minutes. They
// have no goroutines, and the race detector makes them 25 times as slow; make
// test-new-project-plans runs them without it.

package main

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tree is this project, and full and lean are what new ones get.
var (
	tree = sync.OnceValues(func() ([]treeFile, error) { return readTree(context.Background(), "../..") })
	full = sync.OnceValues(func() (*blueprint, error) { return blueprintOf(false) })
	lean = sync.OnceValues(func() (*blueprint, error) { return blueprintOf(true) })
)

func blueprintOf(lean bool) (*blueprint, error) {
	files, err := tree()
	if err != nil {
		return nil, err
	}
	return newBlueprint(files, lean) // it fails if a name is left
}

func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	got, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// texts returns the texts of the files of a plan, by path: "" for pictures.
func texts(t *testing.T, b *blueprint, n names, kinds ...addedKind) map[string]string {
	t.Helper()
	p, err := b.plan(n, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range p.files {
		all[file.path] = ""
		if file.isText() {
			all[file.path] = string(file.data)
		}
	}
	return all
}

// inBoth tests the text files of a project with everything, and of a lean one.
func inBoth(t *testing.T, test func(t *testing.T, all map[string]string)) {
	t.Helper()
	t.Run("full", func(t *testing.T) { test(t, texts(t, must(t, full), route)) })
	t.Run("lean", func(t *testing.T) { test(t, texts(t, must(t, lean), route)) })
}

// TestNamesThatThisProjectUses checks the spelling for names of this project's code.
func TestNamesThatThisProjectUses(t *testing.T) {
	for say, test := range map[string]struct {
		change func(*request)
		want   string // suffixed, longAlias, or an error
	}{
		"nothing is taken":                            {func(*request) {}, ""},
		"a variable":                                  {func(r *request) { r.Kind = "Policy" }, "suffixed"},
		"a plural that equals the kind":               {func(r *request) { r.Kind, r.Plural = "Sheep", "sheep" }, "suffixed"},
		"an import":                                   {func(r *request) { r.Group, r.Version = "apps.acme.dev", "v1" }, "longAlias"},
		"a program that the Makefile builds":          {func(r *request) { r.Module = "github.com/acme/golangci-lint" }, "which Makefile already uses"},
		"a program that a script builds":              {func(r *request) { r.Module = "github.com/acme/devcluster" }, "must not be devcluster"},
		"a program that is the directory of programs": {func(r *request) { r.Module = "github.com/acme/bin" }, "must not be bin"},
		"a program that is a directory":               {func(r *request) { r.Module = "github.com/acme/docs" }, "must not be docs"},
	} {
		r := good
		test.change(&r)
		p, err := must(t, full).plan(deriveNames(r))
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case p.suffixed:
			got = "suffixed"
		case p.longAlias:
			got = "longAlias"
		}
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", say, got, test.want)
		}
	}
}

// exists reports whether the new project has a file or directory at a path, or will have one
// after the generation of code.
func exists(all map[string]string, name string) bool {
	if _, ok := all[name]; ok || name == "." || matches(name, made) || strings.HasPrefix(name, "pkg/generated/") {
		return true
	}
	for file := range all {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile("[^a-z0-9 _-]")
)

func TestLinksInNewDocuments(t *testing.T) { inBoth(t, checkLinks) }

func checkLinks(t *testing.T, all map[string]string) {
	t.Helper()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if path.Ext(file) != ".md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(all[file], -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if !exists(all, to) {
				t.Errorf("%s links to %s, which does not exist", file, match[1])
			}
			if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s links to %s, which is not a heading", file, match[1])
			}
		}
	}
}

// anchors returns the anchors of a document's headings.
func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}

var (
	makeRule      = regexp.MustCompile(`(?m)^([a-z][a-z0-9/-]*(?: [a-z][a-z0-9/-]*)*) *:([^=\n#]*)`)
	makeCheck     = regexp.MustCompile(`(?m)\$\(check\) ([a-z0-9-]+)$`)
	makeTold      = regexp.MustCompile("`make ([a-z][a-z0-9-]+)")
	inTree        = regexp.MustCompile(`(?:^|[\s"(=])((?:hack|tools|test|docs|devcluster|artifacts|internal|pkg)/[A-Za-z0-9_./-]*[A-Za-z0-9])`)
	patched       = regexp.MustCompile(`(?m)^[ -]([^-].+)$`)
	ofTwoVersions = regexp.MustCompile(`^artifacts/versions|/versions\.yaml$`)
	testTold      = regexp.MustCompile("(?m)^\\| .*`((?:Test|Fuzz|check)[A-Z]\\w*)`")
)

// TestWhatIsNamedExists checks the targets of the Makefile, their prerequisites and checks, the
// paths of files in code, scripts and documents, the lines that patches change, and the tests in
// tables.
func TestWhatIsNamedExists(t *testing.T) { inBoth(t, checkNamed) }

func checkNamed(t *testing.T, all map[string]string) {
	t.Helper()
	targets := map[string]bool{"FORCE": true}
	each := func(is func(file string) bool, pattern *regexp.Regexp, check func(file string, match []string)) {
		for _, file := range slices.Sorted(maps.Keys(all)) {
			if is(file) {
				for _, match := range pattern.FindAllStringSubmatch(all[file], -1) {
					check(file, match)
				}
			}
		}
	}
	isMakefile := func(file string) bool { return file == "Makefile" || path.Ext(file) == ".mk" }
	isDocument := func(file string) bool { return path.Ext(file) == ".md" }
	each(isMakefile, makeRule, func(_ string, match []string) { targets[match[1]] = true })
	if len(targets) < 10 {
		t.Fatalf("only %d targets", len(targets))
	}
	each(isMakefile, makeRule, func(file string, match []string) {
		for prerequisite := range strings.FieldsSeq(match[2]) {
			if !targets[prerequisite] {
				t.Errorf("%s: make %s needs %s, which is not a target", file, match[1], prerequisite)
			}
		}
	})
	each(isMakefile, makeCheck, func(file string, match []string) {
		if !strings.Contains(all["hack/check.sh"], "\ncheck_"+match[1]+"()") {
			t.Errorf("%s calls the check %s, which hack/check.sh does not have", file, match[1])
		}
	})
	each(isDocument, makeTold, func(file string, match []string) {
		if !targets[match[1]] {
			t.Errorf("%s names %s`, which the Makefile does not have", file, match[0])
		}
	})
	tests := map[string]bool{}
	each(func(file string) bool { return path.Ext(file) == ".go" }, testLine, func(_ string, match []string) { tests[match[1]] = true })
	each(isDocument, testTold, func(file string, match []string) {
		if !tests[match[1]] {
			t.Errorf("%s names the test %s, which does not exist", file, match[1])
		}
	})
	each(func(file string) bool { return path.Ext(file) == ".patch" }, patched, func(file string, match []string) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(text string) bool { return strings.Contains(text, "\n"+match[1]+"\n") }) {
			t.Errorf("%s does not apply: no file has the line %q", file, match[1])
		}
	})
	// Tests name invented files. Some files exist only with two versions of the API.
	each(func(file string) bool { return !strings.HasSuffix(file, "_test.go") }, inTree, func(file string, match []string) {
		nearby := path.Join(path.Dir(file), match[1])
		if !exists(all, match[1]) && !exists(all, nearby) && !strings.Contains(match[1], "GROUP") && !ofTwoVersions.MatchString(match[1]) {
			t.Errorf("%s names %s, which does not exist", file, match[1])
		}
	})
}

func TestFilesThatAreLeftOutExist(t *testing.T) {
	files := must(t, tree)
	for _, pattern := range slices.Concat(leftOut, extras) {
		if !slices.ContainsFunc(files, func(file treeFile) bool { return matches(file.path, []string{pattern}) }) {
			t.Errorf("no file of this project matches %s, which new projects leave out", pattern)
		}
	}
}

// TestRowsAboutWhatIsLeftOut checks which parts of documents go.
func TestRowsAboutWhatIsLeftOut(t *testing.T) {
	o := omission{leftOut, map[string]bool{}, map[string]bool{"TestKept": true}}
	o.has(treeFile{path: "test/bench/targets.mk", data: []byte("a := b\ntest-all: budgets\nbudgets: bin/x ## Count\nbin/x: FORCE\n")})
	o.has(treeFile{path: "devcluster/targets.mk", data: []byte("test-devcluster: ## Test\n")})
	for block, want := range map[string]string{
		"| the directory | `test/bench/` | x |\n":                  "",
		"| a file in it | `test/bench/main.go` |\n":                "",
		"| a pattern | `docs/benchmarks*` |\n":                     "",
		"| a link | [x](benchmarks.md#size) |\n":                   "",
		"| a link with a path | [x](../tools/newproject/x.go) |\n": "",
		"| a target | `make budgets` |\n":                          "",
		"| a target with a variable | `X=1 make budgets` |\n":      "",
		"a sentence with `test/bench`\nin a paragraph\n":           "",
		"```sh\nmake budgets\n```\n":                               "",
		"| a target that remains | `make test-all` |\n":            "| a target that remains | `make test-all` |\n",
		"| a directory that remains | `test/e2e`, `/metrics` |\n":  "| a directory that remains | `test/e2e`, `/metrics` |\n",
		"| a link elsewhere | [x](https://x.example/a) |\n":        "| a link elsewhere | [x](https://x.example/a) |\n",
		"| tests | `TestGone`, `TestKept`; e2e `checkGone` |\n":    "| tests | `TestKept` |\n",
		"| tests | e2e `checkGone`; faults C4, C5 |\n":             "| tests | |\n",
	} {
		got := string(o.document(treeFile{path: "docs/x.md", data: []byte("before\n\n" + block + "\nafter\n")}))
		if want = "before\n\n" + want + "\nafter\n"; got != strings.Replace(want, "\n\n\n", "\n\n", 1) {
			t.Errorf("%s: got\n%s", block, got)
		}
	}
	for file, want := range map[string]bool{
		"test/bench/main.go": true, "test/bench": true, "docs/benchmarks.md": true, "docs/benchmarks/a.svg": true,
		"test/benchmark/main.go": false, "docs/contract.md": false, "/metrics": false, ".": false,
	} {
		if got := matches(file, leftOut); got != want {
			t.Errorf("%s: got %v", file, got)
		}
	}
}

// TestTheReadmeNamesFunctions checks the functions that the README of a new project names, with
// their files.
func TestTheReadmeNamesFunctions(t *testing.T) {
	all := texts(t, must(t, lean), widget)
	for file, function := range map[string]string{
		"pkg/reconcile/plan/deployment.go": "Deployment", "pkg/reconcile/plan/kinds.go": "Kinds", "pkg/reconcile/plan/status.go": "WithStatus",
	} {
		isThere := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `\(`).MatchString(all[file])
		if !isThere || !strings.Contains(all["README.md"], "`"+function+"`") || !strings.Contains(all["README.md"], file) {
			t.Errorf("the README does not name %s in %s, or it is not there", function, file)
		}
	}
}
