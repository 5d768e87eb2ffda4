//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of plans. They find in seconds what tests of whole projects find in minutes. They
// have no goroutines, and the race detector makes them 25 times as slow; make
// test-new-project-plans runs them without it.

package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tree is this project, and full and lean what new ones get.
var (
	tree = sync.OnceValues(func() ([]treeFile, error) { return readTree("../..") })
	full = sync.OnceValues(func() (*sources, error) { return readOurs(false) })
	lean = sync.OnceValues(func() (*sources, error) { return readOurs(true) })
)

func readOurs(lean bool) (*sources, error) {
	files, err := tree()
	if err != nil {
		return nil, err
	}
	return readSources(files, lean)
}

func ours(t *testing.T) *sources { return must(t, full) }

func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	got, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPlansHaveNoTrace searches plans for the sample's names.
func TestPlansHaveNoTrace(t *testing.T) {
	sample := deriveNames(request{Module: "github.com/acme/samples", Group: "sample.acme.dev", Version: "v1", Kind: "Sample"})
	for _, n := range []names{widget, route, policy, truck, bar, sheep, index, sample} {
		t.Run(n.Kind, func(t *testing.T) {
			p, err := ours(t).plan(n)
			if err != nil {
				t.Fatal(err)
			}
			for _, trace := range findTraces(p.files, n) {
				t.Error(trace)
			}
		})
	}
}

// TestKindsThatThisProjectUses checks that names of this project's code work as kinds, or
// are refused before anything is written.
func TestKindsThatThisProjectUses(t *testing.T) {
	for kind, want := range map[string]string{
		"Cluster": "", "Cache": "", "Client": "", "Controller": "", "Owner": "", "World": "", "Record": "", "Database": "", "Proxy": "", "Endpoint": "Kubernetes' own",
		"Resource": "would both be named Resource", "Doc": "would write", "Interface": "a word of Go",
		"Err": "already has a meaning in generated code", "Internal": "already has a meaning in generated code",
	} {
		r := good
		r.Kind = kind
		err := checkNames(r)
		if err == nil {
			_, err = ours(t).spellerFor(deriveNames(r))
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q in it", kind, err, want)
		}
	}
}

func TestSpellingsThatAreFree(t *testing.T) {
	for say, test := range map[string]struct {
		kind, group string
		want        [2]bool
	}{
		"nothing is taken": {"Widget", "acme.dev", [2]bool{false, false}},
		"a variable":       {"Cluster", "acme.dev", [2]bool{true, false}},
		"an import":        {"Widget", "apps.acme.dev", [2]bool{false, true}},
		"both":             {"Cluster", "apps.acme.dev", [2]bool{true, true}},
	} {
		r := good
		r.Kind, r.Group, r.Version = test.kind, test.group, "v1"
		s, err := ours(t).spellerFor(deriveNames(r))
		if got := [2]bool{s.suffixed, s.longAlias}; err != nil || got != test.want {
			t.Errorf("%s: got %v, %v, want %v", say, got, err, test.want)
		}
	}
}

func TestGroupsAndProgramsThatThisProjectUses(t *testing.T) {
	for say, test := range map[string]struct {
		change func(*request)
		want   string
	}{
		"a group that is one of Kubernetes'":       {func(r *request) { r.Group, r.Version, r.Kind = "apps.acme.dev", "v1", "Policy" }, ""},
		"a group that is a method of the factory":  {func(r *request) { r.Group = "start.acme.dev" }, "would both be named Start"},
		"a program that the Makefile builds":       {func(r *request) { r.Module = "github.com/acme/demo" }, "which tools/demo/targets.mk already has in bin"},
		"a program that a script builds":           {func(r *request) { r.Module = "github.com/acme/image" }, "which hack/image.sh already has in bin"},
		"a program that is the folder of programs": {func(r *request) { r.Module = "github.com/acme/bin" }, "where the programs are built"},
		"a program that is a folder":               {func(r *request) { r.Module = "github.com/acme/docs" }, "is a folder or file of the project"},
	} {
		r := good
		test.change(&r)
		_, err := ours(t).spellerFor(deriveNames(r))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q in it", say, err, test.want)
		}
	}
}

// texts returns the texts of the files of a plan, by path: "" for pictures.
func texts(t *testing.T, src *sources, n names) map[string]string {
	t.Helper()
	p, err := src.plan(n)
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

// exists reports whether the new project has a file or folder at a path, or will have one
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
	makeRule  = regexp.MustCompile(`(?m)^([a-z][a-z0-9/-]*) *:([^=\n#]*)`)
	makeCheck = regexp.MustCompile(`(?m)\$\(check\) ([a-z0-9-]+)$`)
	makeTold  = regexp.MustCompile("`?make ([a-z][a-z0-9-]+)")
	inTree    = regexp.MustCompile(`(?:^|[\s"(=])((?:hack|tools|test|docs|devcluster|artifacts|internal|pkg)/[A-Za-z0-9_./-]*[A-Za-z0-9])`)
)

func TestNewMakefileIsComplete(t *testing.T) { inBoth(t, checkMakefile) }

func checkMakefile(t *testing.T, all map[string]string) {
	t.Helper()
	makefile := ""
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if file == "Makefile" || path.Ext(file) == ".mk" {
			makefile += all[file]
		}
	}
	targets := map[string]bool{"FORCE": true}
	for _, match := range makeRule.FindAllStringSubmatch(makefile, -1) {
		targets[match[1]] = true
	}
	if len(targets) < 10 {
		t.Fatalf("only %d targets", len(targets))
	}
	for _, match := range makeRule.FindAllStringSubmatch(makefile, -1) {
		for prerequisite := range strings.FieldsSeq(match[2]) {
			if !targets[prerequisite] {
				t.Errorf("make %s needs %s, which is not a target", match[1], prerequisite)
			}
		}
	}
	for _, match := range makeCheck.FindAllStringSubmatch(makefile, -1) {
		if !strings.Contains(all["hack/check.sh"], "\ncheck_"+match[1]+"()") {
			t.Errorf("the Makefile calls the check %s, which hack/check.sh does not have", match[1])
		}
	}
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/testing.md", "docs/operations.md", "docs/contract.md"} {
		for _, match := range makeTold.FindAllStringSubmatch(all[file], -1) {
			if strings.HasPrefix(match[0], "`") && !targets[match[1]] {
				t.Errorf("%s names %s`, which the Makefile does not have", file, match[0])
			}
		}
	}
}

// TestNamedFilesExist checks the paths of files in code, scripts and documents.
func TestNamedFilesExist(t *testing.T) { inBoth(t, checkNamedFiles) }

func checkNamedFiles(t *testing.T, all map[string]string) {
	t.Helper()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if strings.HasSuffix(file, "_test.go") { // tests name invented files
			continue
		}
		for _, match := range inTree.FindAllStringSubmatch(all[file], -1) {
			if strings.Contains(all[file], "<!-- file: "+match[1]+" -->\n") { // a document makes it
				continue
			}
			nearby := path.Join(path.Dir(file), match[1])
			if !exists(all, match[1]) && !exists(all, nearby) && !strings.Contains(match[1], "GROUP") {
				t.Errorf("%s names %s, which does not exist", file, match[1])
			}
		}
	}
}

func TestFilesThatAreLeftOutExist(t *testing.T) {
	files := must(t, tree)
	for _, pattern := range slices.Concat(leftOut, extras) {
		if !slices.ContainsFunc(files, func(file treeFile) bool { return matches(file.path, []string{pattern}) }) {
			t.Errorf("no file of this project matches %s, which new projects leave out", pattern)
		}
	}
}

func TestNextStepsExist(t *testing.T) {
	all := texts(t, ours(t), widget)
	for file, function := range map[string]string{
		"internal/plan/deployment.go": "Deployment",
		"internal/plan/kinds.go":      "Kinds",
		"internal/plan/status.go":     "WithStatus",
	} {
		if !strings.Contains(next, file) || !strings.Contains(next, function) || !strings.Contains(all["README.md"], "`"+function+"`") {
			t.Errorf("newproject's hints or the README do not name %s in %s", function, file)
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `\(`).MatchString(all[file]) {
			t.Errorf("%s has no function %s", file, function)
		}
	}
}
