/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// errReported is returned when the output has said already what is wrong.
var errReported = errors.New("not every document is right")

// titleLength is how much of a command is shown while it runs.
const titleLength = 90

// report counts the blocks, and prints how each went in the words of go test, which is what .ci/run counts.
type report struct {
	out     io.Writer
	verbose bool
	passed  int
	failed  []string
	skipped []string
}

// runAll runs the documents of a tree.
func runAll(ctx context.Context, opts options, out io.Writer) error {
	root, err := filepath.Abs(opts.root)
	if err != nil {
		return err
	}
	documents, err := chooseDocuments(root, opts.only)
	if err != nil {
		return err
	}
	r := &report{out: out, verbose: opts.v}
	start := time.Now()
	for _, name := range documents {
		if err := r.document(ctx, root, name, opts); err != nil {
			return err
		}
	}
	if opts.list {
		return nil
	}
	fmt.Fprintf(out, "\n%d commands and outputs passed, %d failed, %d not run, in %.0f s\n", r.passed, len(r.failed), len(r.skipped), time.Since(start).Seconds())
	for _, skipped := range r.skipped {
		fmt.Fprintf(out, "    not run: %s\n", skipped)
	}
	for _, failed := range r.failed {
		fmt.Fprintf(out, "    failed: %s\n", failed)
	}
	if len(r.failed) > 0 {
		return errReported
	}
	return nil
}

// chooseDocuments returns the documents of the tree, or those of them that are asked for.
func chooseDocuments(root, only string) ([]string, error) {
	all, err := findDocuments(root)
	if err != nil || only == "" {
		return all, err
	}
	var chosen []string
	for name := range strings.SplitSeq(only, ",") {
		name = filepath.ToSlash(filepath.Clean(name))
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-only=%s: no such document; there are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, name)
	}
	return chosen, nil
}

// findDocuments returns every Markdown file of the tree, but not of what the build makes.
func findDocuments(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(notSources, entry.Name()) || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		name, err := filepath.Rel(root, path)
		found = append(found, filepath.ToSlash(name))
		return err
	})
	return found, err
}

// document runs one document. Its error is one of the machine's; what is wrong with the document is reported.
func (r *report) document(ctx context.Context, root, name string, opts options) error {
	source, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return err
	}
	steps, err := parseDocument(source)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.fail(name + ": " + line)
		}
		return nil
	}
	if opts.list {
		r.list(name, steps)
		return nil
	}
	if !slices.ContainsFunc(steps, func(s step) bool { return s.run.skip == "" }) {
		r.all(name, steps)
		return nil
	}
	w, err := newWorld(ctx, root)
	if err != nil {
		return err
	}
	run := newRunner(name, w)
	err = r.steps(ctx, run, steps)
	if closeErr := run.close(); closeErr != nil {
		r.fail(fmt.Sprintf("%s: what it left running: %v", name, closeErr))
	}
	if opts.keep {
		fmt.Fprintf(r.out, "%s: the copy of the tree, and what its blocks printed, are in %s\n", name, w.scratch)
		return err
	}
	return errors.Join(err, w.remove())
}

// steps carries out the steps of a document, until one fails: those after it would have nothing to stand on.
func (r *report) steps(ctx context.Context, run *runner, steps []step) error {
	for i, s := range steps {
		title := run.at(s.line)
		fmt.Fprintf(r.out, "=== RUN   %s  %s\n", title, s.title())
		start := time.Now()
		skipped, err := run.do(ctx, s)
		took := time.Since(start).Seconds()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil:
			r.fail(title)
			fmt.Fprintf(r.out, "%s\n%s\n    steps not run after it: %d\n", indent(s.text), indent(err.Error()), len(steps)-i-1)
			return nil
		case skipped != "":
			r.skip(title, s, skipped)
		case s.kind == stepAct || s.kind == stepFile:
			fmt.Fprintf(r.out, "    done: %s (%.2fs)\n", title, took)
		default:
			r.passed++
			fmt.Fprintf(r.out, "--- PASS: %s (%.2fs)\n", title, took)
			if r.verbose && s.kind == stepRun {
				fmt.Fprintln(r.out, indent(run.clean(run.last.job.output())))
			}
		}
	}
	return nil
}

// all reports a document of which nothing is to be run.
func (r *report) all(name string, steps []step) {
	for _, s := range steps {
		r.skip(fmt.Sprintf("%s:%d", name, s.line), s, s.run.skip)
	}
}

func (r *report) fail(what string) {
	r.failed = append(r.failed, what)
	fmt.Fprintf(r.out, "--- FAIL: %s\n", what)
}

func (r *report) skip(title string, s step, why string) {
	fmt.Fprintf(r.out, "--- SKIP: %s (%s)\n", title, why)
	if s.kind == stepRun {
		r.skipped = append(r.skipped, fmt.Sprintf("%s  %s (%s)", title, s.title(), why))
	}
}

// list says what would be run.
func (r *report) list(name string, steps []step) {
	for _, s := range steps {
		fmt.Fprintf(r.out, "%s:%d  %s", name, s.line, s.title())
		if s.run.skip != "" {
			fmt.Fprintf(r.out, " (not run: %s)", s.run.skip)
		}
		fmt.Fprintln(r.out)
	}
}

// title says in a line what a step does.
func (s step) title() string {
	lines := strings.Split(strings.TrimSpace(s.text), "\n")
	first := lines[0]
	if runes := []rune(first); len(runes) > titleLength {
		first = string(runes[:titleLength]) + "..."
	} else if len(lines) > 1 {
		first += " ..."
	}
	switch s.kind {
	case stepExpect:
		return "prints " + strings.Join(strings.Fields(first), " ")
	case stepFile:
		return "file " + s.path
	case stepPatch:
		return "patch"
	case stepAct:
		return s.act.title()
	}
	return first
}

func (a actOptions) title() string {
	switch {
	case a.nodes > 0 && a.interrupt:
		return "interrupt, then a cluster"
	case a.nodes > 0:
		return "a cluster"
	}
	return strings.TrimSpace("interrupt " + a.victim)
}
