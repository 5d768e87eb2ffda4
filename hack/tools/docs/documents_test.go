// SPDX-License-Identifier: Apache-2.0

// The test of this tree's documents.

package docs

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	only = flag.String("only", "", "Comma-separated list of documents to run, such as docs/tour.md, or all.")
	part = flag.String("part", "1/1", "With -only=all, a part of the documents: 2/3 is README.md, and every third of the others.")
	keep = flag.Bool("keep", false, "Keep the copies of the tree, and print their paths.")
	show = flag.Bool("v", false, "Print the output of each block.")
)

// document is a document and its steps.
type document struct {
	name  string
	steps []*step
	takes time.Duration // the sum of the timeouts
}

// TestDocuments finds mistakes in all documents. With -only, as make docs-test calls it, it runs
// them, those with the longest timeouts first.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	all := findDocuments(t, root)
	if *only == "" {
		t.Skip("The documents are correct. make docs-test runs them")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	slices.SortStableFunc(all, func(a, b document) int { return cmp.Compare(b.takes, a.takes) })
	names := strings.Split(*only, ",")
	for _, name := range names {
		if name != "all" && !slices.ContainsFunc(all, func(d document) bool { return d.name == name }) {
			t.Fatalf("-only=%s: no such document", name)
		}
	}
	var number, parts int
	if _, err := fmt.Sscanf(*part, "%d/%d", &number, &parts); err != nil || number < 1 || number > parts {
		t.Fatalf("-part=%s: want a number, and of how many, such as 2/3", *part)
	}
	all = slices.DeleteFunc(all, func(d document) bool { return !slices.Contains(names, "all") && !slices.Contains(names, d.name) })
	for i, d := range all {
		t.Run(d.name, func(t *testing.T) {
			if i%parts != number-1 && slices.Contains(names, "all") && d.name != "README.md" {
				t.Skipf("It is in part %d/%d", i%parts+1, parts)
			}
			t.Parallel()
			d.run(ctx, t, root)
		})
	}
}

// findDocuments returns every Markdown file of a tree that git does not ignore, except those in
// testdata.
func findDocuments(t *testing.T, root string) (found []document) {
	t.Helper()
	files, err := output(t.Context(), root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", "*.md", ":!*testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(files) {
		source, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not yet in the index
		}
		d := document{name: name}
		if err == nil {
			d.steps, err = parseDocument(source)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range d.steps {
			d.takes += s.timeout
		}
		found = append(found, d)
	}
	return found
}

// run runs a document. Each of its steps is a test.
func (d document) run(ctx context.Context, t *testing.T, root string) {
	if !slices.ContainsFunc(d.steps, func(s *step) bool { return s.skip == "" }) {
		t.Skip("It has nothing to run")
	}
	box, err := newSandbox(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	if *keep {
		t.Logf("the copy of the tree, and what its blocks printed, are in %s", box.scratch)
	} else {
		defer func() {
			if err := box.remove(); err != nil {
				t.Error(err)
			}
		}()
	}
	r, err := newRunner(d.name, box)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.steps {
		first, _, _ := strings.Cut(strings.TrimSpace(s.text), "\n")
		t.Run(fmt.Sprintf("%d %.90s", s.line, first), func(t *testing.T) {
			skipped, err := r.do(ctx, s)
			if err != nil {
				t.Fatalf("%s\n%s\n%s", r.at(s.line), indent(s.text), indent(err.Error()))
			}
			if skipped != "" {
				t.Skip(skipped)
			}
			if *show && s.job != nil {
				t.Log("\n" + indent(r.printed(s)))
			}
		})
	}
	if err := r.shell.close(); err != nil {
		t.Errorf("stopping what it left running: %v", err)
	}
}
