// SPDX-License-Identifier: Apache-2.0

// Tests of the directories in docs/layout.md, of the names of code that documents link, of the code
// that they show, and that every patch applies.

package claims

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// folder matches a directory in docs/layout.md: at the start of a line, or in the first
	// cell of a table.
	folder = regexp.MustCompile("(?m)^(?:\\| `)?([a-z][a-zA-Z0-9/-]*)/[` ]")
	// codeLink matches a name that a document links to the file that declares it, in this
	// repository or in client-go.
	codeLink = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\((\\.\\./|https://github\\.com/kubernetes/client-go/blob/v[0-9.]+/)([a-zA-Z0-9_/]+\\.go)\\)")
	// clientGoLink matches a link to a file of client-go.
	clientGoLink = regexp.MustCompile(`https://github\.com/kubernetes/client-go/blob/(v[0-9.]+)/`)
	// patchedFile matches the name of a file that a patch changes.
	patchedFile = regexp.MustCompile(`(?m)^--- a/(\S+)$`)
)

// TestLayoutHasTheFolders also finds a directory that is gone, at any depth.
func TestLayoutHasTheFolders(t *testing.T) {
	named := map[string]bool{}
	for _, match := range folder.FindAllStringSubmatch(read(t, "docs/layout.md"), -1) {
		named[match[1]] = true
		if info, err := os.Stat(filepath.Join(moduleRoot, match[1])); err != nil || !info.IsDir() {
			t.Errorf("docs/layout.md names %s, which is not a folder", match[1])
		}
	}
	for _, parent := range []string{"artifacts", "hack", "internal", "pkg", "pkg/process", "pkg/reconcile", "test", "tools"} {
		for _, file := range tracked(t, ":(glob)"+parent+"/*/**") {
			path := filepath.Join(parent, strings.Split(strings.TrimPrefix(file, parent+"/"), "/")[0])
			if !named[path] {
				t.Errorf("docs/layout.md lacks the folder %s", path)
				named[path] = true
			}
		}
	}
}

func TestLinkedNamesAreInTheirFiles(t *testing.T) {
	version, clientGo, _ := strings.Cut(goCommand(t, "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", "k8s.io/client-go"), "\n")
	for _, document := range []string{"docs/from-upstream.md", "docs/layout.md", "docs/tour.md"} {
		text := read(t, document)
		links := codeLink.FindAllStringSubmatch(text, -1)
		if len(links) < 10 {
			t.Errorf("%s links %d names, want more", document, len(links))
		}
		for _, link := range links {
			file := link[3]
			if clientGoLink.MatchString(link[2]) {
				file = filepath.Join(clientGo, file)
			}
			if !declaredIn(t, file)[link[1]] {
				t.Errorf("%s says that %s is in %s: it is not", document, link[1], link[3])
			}
		}
		for _, link := range clientGoLink.FindAllStringSubmatch(text, -1) {
			if link[1] != version {
				t.Errorf("%s links client-go %s, and go.mod has %s", document, link[1], version)
			}
		}
	}
}

// TestDocumentsShowTheirCode looks for the excerpts in some documents, in which "…" stands for
// what is left out, in the files in the directory of the same name. The tour applies each patch.
func TestDocumentsShowTheirCode(t *testing.T) {
	plain := strings.NewReplacer("\n+", "\n")
	for name, language := range map[string]string{"tour": "diff", "second-child": "go", "second-kind": "go", "questions": "go"} {
		files := tracked(t, "docs/"+name+"/*.patch", "docs/"+name+"/*.go")
		for _, block := range strings.Split(read(t, "docs/"+name+".md"), "\n```"+language+"\n")[1:] {
			shown, _, _ := strings.Cut("\n"+block, "```\n")
			parts := strings.Split(plain.Replace(shown), "…\n")
			holds := func(file string) bool {
				text := plain.Replace(read(t, file))
				return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
			}
			if !slices.ContainsFunc(files, holds) {
				t.Errorf("docs/%s.md shows code that is not in docs/%[1]s:\n%s", name, shown)
			}
		}
	}
	for _, file := range tracked(t, "docs/tour/*.patch") {
		if apply := "git apply " + file + "\n"; !strings.Contains(read(t, "docs/tour.md"), apply) {
			t.Errorf("docs/tour.md lacks %s", apply)
		}
	}
}

// TestPatchesApply finds an outdated patch at once: the tests that build from one take
// minutes. It leaves out those that are applied, and those of files that a reader creates.
func TestPatchesApply(t *testing.T) {
	for _, patch := range tracked(t, "docs/*/*.patch") {
		ofReader := slices.ContainsFunc(patchedFile.FindAllStringSubmatch(read(t, patch), -1), func(file []string) bool {
			_, err := os.Stat(filepath.Join(moduleRoot, file[1]))
			return err != nil
		})
		_, isApplied := run(t, "git", "apply", "--check", "--reverse", patch)
		if _, err := run(t, "git", "apply", "--check", patch); err != nil && isApplied != nil && !ofReader {
			t.Errorf("%s no longer applies, create it again: %v", patch, err)
		}
	}
}
