// SPDX-License-Identifier: Apache-2.0

// Running all documents, comparing outputs, and reporting the results.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// errReported is returned if the output already contains the failures.
var errReported = errors.New("some documents failed")

// atATime is the number of documents that run at a time. They spend much of their time
// waiting for a cluster, so this is more than two cores could compile for.
const atATime = 3

// report counts the blocks, and prints the result of each in the format of go test, which
// .ci/run counts.
type report struct {
	verbose bool

	mu      sync.Mutex // guards the fields below
	out     io.Writer
	passed  int
	failed  []string
	skipped []string
}

// runAll runs the documents of a tree.
func runAll(ctx context.Context, f flags, out io.Writer) error {
	root, err := filepath.Abs(f.root)
	if err != nil {
		return err
	}
	documents, err := chooseDocuments(ctx, root, f.only)
	if err != nil {
		return err
	}
	r := &report{out: out, verbose: f.v}
	start := time.Now()
	if err := r.documents(ctx, root, documents, f); err != nil {
		return err
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

// chooseDocuments returns all documents of the tree, or those named in only.
func chooseDocuments(ctx context.Context, root, only string) ([]string, error) {
	all, err := findDocuments(ctx, root)
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

// findDocuments returns every Markdown file of the tree that git does not ignore, except those
// in testdata.
func findDocuments(ctx context.Context, root string) ([]string, error) {
	files, err := output(ctx, root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", "*.md", ":!*testdata/*")
	found := slices.DeleteFunc(strings.Fields(files), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil // deleted, but not yet in the index
	})
	return found, err
}

// document is a document and its steps.
type document struct {
	name  string
	steps []step
	takes time.Duration // the sum of the timeouts
}

// documents runs documents, those with the longest timeouts first. It reports mistakes in a
// document as failures.
func (r *report) documents(ctx context.Context, root string, names []string, f flags) error {
	var documents []document
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		d := document{name: name}
		if d.steps, err = parseDocument(source); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				r.fail(name + ": " + line)
			}
			continue
		}
		for _, s := range d.steps {
			d.takes += s.timeout
		}
		documents = append(documents, d)
	}
	slices.SortStableFunc(documents, func(a, b document) int { return cmp.Compare(b.takes, a.takes) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, d := range documents {
		group.Go(func() error { return r.document(ctx, root, d, f) })
	}
	return group.Wait()
}

// document runs one document. It reports failures of the document, and returns an error
// only for other failures, such as a full disk.
func (r *report) document(ctx context.Context, root string, d document, f flags) error {
	if !slices.ContainsFunc(d.steps, func(s step) bool { return s.skip == "" }) {
		for _, s := range d.steps {
			r.skip(fmt.Sprintf("%s:%d", d.name, s.line), s, s.skip)
		}
		return nil
	}
	box, err := newSandbox(ctx, root)
	if err != nil {
		return err
	}
	run, err := newRunner(d.name, box)
	if err != nil {
		return errors.Join(err, box.remove())
	}
	err = r.steps(ctx, run, d.steps)
	if closeErr := run.shell.close(); closeErr != nil {
		r.fail(fmt.Sprintf("%s: stopping what it left running: %v", d.name, closeErr))
	}
	if f.keep {
		r.say("%s: the copy of the tree, and what its blocks printed, are in %s\n", d.name, box.scratch)
		return err
	}
	return errors.Join(err, box.remove())
}

// steps executes the steps of a document until one fails, because later steps depend on
// earlier ones.
func (r *report) steps(ctx context.Context, run *runner, steps []step) error {
	for i, s := range steps {
		title := run.at(s.line)
		r.say("=== RUN   %s  %s\n", title, s.title())
		start := time.Now()
		skipped, err := run.do(ctx, s)
		took := time.Since(start).Seconds()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil:
			r.fail(fmt.Sprintf("%s\n%s\n%s\n    steps not run after it: %d", title, indent(s.text), indent(err.Error()), len(steps)-i-1))
			return nil
		case skipped != "":
			r.skip(title, s, skipped)
		case s.kind == stepBefore || s.kind == stepFile:
			r.say("    done: %s (%.2fs)\n", title, took)
		default:
			r.pass(title, took)
			if r.verbose && s.kind == stepRun {
				r.say("%s\n", indent(run.clean(run.blocks[len(run.blocks)-1].job.output())))
			}
		}
	}
	return nil
}

// say prints a text without output of other documents within it.
func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *report) pass(title string, seconds float64) {
	r.say("--- PASS: %s (%.2fs)\n", title, seconds)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed++
}

// fail reports a failure. The first line of what is its title, and also appears in the
// summary.
func (r *report) fail(what string) {
	r.say("--- FAIL: %s\n", what)
	first, _, _ := strings.Cut(what, "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, first)
}

func (r *report) skip(title string, s step, why string) {
	r.say("--- SKIP: %s (%s)\n", title, why)
	if s.kind == stepRun {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.skipped = append(r.skipped, fmt.Sprintf("%s  %s (%s)", title, s.title(), why))
	}
}

// kinds are the parts of a line that differ from run to run, and a placeholder for each.
// The order matters: an RFC 3339 time contains numbers that later patterns would match.
var kinds = []struct {
	pattern *regexp.Regexp
	as      string
}{
	// klog's header, except for severity and file.
	{regexp.MustCompile(`\b([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w.]+):\d+\]`), "$1<time> $2]"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "<digest>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<commit>"},
	// Generated suffixes in the names of ReplicaSets and their Pods.
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "$1-<hash>-<suffix>"},
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b`), "$1-<hash>"},
	{regexp.MustCompile(`\b(\d{1,3}(?:\.\d{1,3}){3}|localhost|\[::1?\]):\d+\b`), "$1:<port>"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "<ip>"},
	{regexp.MustCompile(`\bresourceVersion: "\d+"`), "resourceVersion: <version>"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ns|µs|us|ms|s|min|seconds?|minutes?|hours?)\b`), "<duration>"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h|d|y))+\b`), "<duration>"},
}

// anything in a document matches any text.
const anything = "…"

// wanted is a line of a document that must be printed.
type wanted struct {
	line int // in the document
	text string
}

// wantedLines returns the lines of a block, except empty ones and those that stand for any
// others.
func wantedLines(text string, first int) []wanted {
	var lines []wanted
	for i, line := range strings.Split(text, "\n") {
		if squeezed := squeeze(line); squeezed != "" && squeezed != anything {
			lines = append(lines, wanted{first + i, line})
		}
	}
	return lines
}

// compare returns the first wanted line that was not printed in its place, or nil if the
// output is correct.
func compare(printed string, want []wanted, anyOrder bool) *wanted {
	lines := strings.Split(printed, "\n")
	for i := range want {
		found := slices.IndexFunc(lines, func(line string) bool { return matches(want[i].text, line) })
		switch {
		case found < 0:
			return &want[i]
		case anyOrder:
			lines = slices.Delete(lines, found, found+1)
		default:
			lines = lines[found+1:]
		}
	}
	return nil
}

// squeeze replaces white space by single spaces, and removes it at both ends.
func squeeze(line string) string {
	return strings.Join(strings.Fields(line), " ")
}

// matches reports whether a printed line matches a line of a document.
func matches(document, printed string) bool {
	document, printed = squeeze(document), squeeze(printed)
	return wildcard(document, printed) || wildcard(alike(document), alike(printed))
}

// alike replaces the parts that differ from run to run by placeholders.
func alike(line string) string {
	for _, kind := range kinds {
		line = kind.pattern.ReplaceAllString(line, kind.as)
	}
	return line
}

// wildcard compares two lines. A … in the first matches any text.
func wildcard(document, printed string) bool {
	parts := strings.Split(document, anything)
	if len(parts) == 1 {
		return document == printed
	}
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(printed)
}
