// SPDX-License-Identifier: Apache-2.0

// Executing the steps of a document, and comparing their output with the document.

package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// How often to check for new output, and to repeat a block until it prints the wanted output.
const (
	lookEvery  = 50 * time.Millisecond
	retryEvery = 500 * time.Millisecond
)

// afterBackground is the default time to wait for the output of a background block.
const afterBackground = 10 * time.Second

// runner executes the steps of one document.
type runner struct {
	name    string // of the document
	shell   *shell
	sandbox *sandbox
	blocks  []*step // of commands, in their order; those without a job were skipped
	cluster *step
	failed  bool // a step
}

func newRunner(name string, box *sandbox) (*runner, error) {
	shell, err := newShell(filepath.Join(box.scratch, "run"), box.copy, box.env)
	return &runner{name: name, sandbox: box, shell: shell}, err
}

// at returns the position of a line of the document, in the format of compilers.
func (r *runner) at(line int) string { return fmt.Sprintf("%s:%d", r.name, line) }

// do executes one step. If the step is skipped, do returns the reason.
func (r *runner) do(ctx context.Context, s *step) (skipped string, err error) {
	defer func() { r.failed = r.failed || err != nil }()
	switch {
	case r.failed: // later steps depend on earlier ones
		return "a step before it failed", nil
	case s.prints:
		return r.expect(ctx, s)
	}
	if s.text != "" {
		r.blocks = append(r.blocks, s)
	}
	if s.skip != "" {
		return s.skip, nil
	}
	if s.interrupt != "" {
		if err := r.interrupt(s.interrupt); err != nil {
			return "", err
		}
	}
	if s.cluster {
		if err := r.startCluster(ctx); err != nil {
			return "", fmt.Errorf("cluster: %w", err)
		}
	}
	if s.text == "" {
		return "", nil
	}
	return "", r.run(ctx, s)
}

// run runs a block to its end, or starts it in the background.
func (r *runner) run(ctx context.Context, s *step) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.job, err = r.shell.start(ctx, s.text, s.background)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("took longer than %v", s.timeout)
	case err != nil:
	case s.background:
		err = waitUntilUp(ctx, s)
	case s.job.code == 0 && s.fails:
		err = errors.New("should have failed, but did not")
	case s.job.code != 0 && !s.fails:
		err = fmt.Errorf("exit code %d", s.job.code)
		lines := strings.Split(s.text, "\n")
		if n := s.job.line; n > 0 && n <= len(lines) {
			err = fmt.Errorf("%w, at %s: %s", err, r.at(s.first+n-1), lines[n-1])
		}
	}
	return r.failure(s, err)
}

// waitUntilUp waits until a background block has printed the text of its option until.
func waitUntilUp(ctx context.Context, s *step) error {
	for ended := false; !strings.Contains(s.job.output(), s.until); ended = s.job.ended() {
		if ended {
			return fmt.Errorf("ended before it printed %q", s.until)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("did not print %q within %v", s.until, s.timeout)
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// failure adds the output of a block to an error, if there is one.
func (r *runner) failure(s *step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nprinted by %s:\n%s", err, r.at(s.line), indent(r.printed(s)))
}

// printed returns what a block has printed, with the documents' paths instead of those of the copy and of
// the home directory.
func (r *runner) printed(s *step) string {
	return strings.NewReplacer(r.sandbox.copy, "~/sample-controller", r.sandbox.home, "~").Replace(s.job.output())
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// expect compares the output of a block with the document.
func (r *runner) expect(ctx context.Context, s *step) (skipped string, err error) {
	b := r.find(func(b *step) bool { return s.of == "" || b.id == s.of })
	switch {
	case b == nil:
		return "", fmt.Errorf("no block %q has been run before this", s.of)
	case b.job == nil:
		return "the block that prints it is skipped", nil
	}
	within, pause := s.within, retryEvery
	if b.background {
		within, pause = cmp.Or(within, afterBackground), lookEvery
	}
	deadline, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	want := wantedLines(s.text, s.first)
	for {
		missing := compare(r.printed(b), want, s.unordered)
		if missing == nil {
			return "", nil
		}
		select {
		case <-deadline.Done():
			return "", r.failure(b, fmt.Errorf("not printed: %s: %s", r.at(missing.line), missing.text))
		case <-time.After(pause):
		}
		if !b.background {
			if err := r.run(ctx, b); err != nil {
				return "", err
			}
		}
	}
}

// find returns the last block that is wanted, or nil.
func (r *runner) find(wanted func(*step) bool) *step {
	for _, b := range slices.Backward(r.blocks) {
		if wanted(b) {
			return b
		}
	}
	return nil
}

// interrupt ends a background block like Ctrl-C.
func (r *runner) interrupt(id string) error {
	b := r.find(func(b *step) bool {
		return b.background && b.job != nil && !b.job.stopped && (id == lastBlock || b.id == id)
	})
	switch {
	case b == nil:
		return fmt.Errorf("nothing to interrupt: no block %q is in the background", id)
	case b.job.ended():
		return r.failure(b, errors.New("should still be running, but has ended"))
	}
	return r.failure(b, b.job.interrupt())
}

// startCluster starts a cluster for the rest of the document. It stops the cluster that
// the document has, if any.
func (r *runner) startCluster(ctx context.Context) error {
	if r.cluster != nil {
		if err := r.cluster.job.interrupt(); err != nil {
			return err
		}
	}
	r.cluster = &step{options: options{background: true, until: "export KUBECONFIG=", timeout: 3 * time.Minute}, text: `mkdir -p ~/.kube
ln -sfn ../devcluster/kubeconfig ~/.kube/config
cd ` + quote(r.sandbox.copy) + `
exec bin/devcluster up -data-dir="$HOME/devcluster"
`}
	if err := r.run(ctx, r.cluster); err != nil {
		return err
	}
	return r.shell.send(`export KUBECONFIG="$HOME/.kube/config" AUDIT_LOG="$HOME/devcluster/audit.log"`)
}

// kinds lists the parts of a line that differ between runs, with a placeholder for each. The order
// matters: an RFC 3339 time contains numbers that later patterns would match.
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
	line  int // in the document
	text  string
	same  *regexp.Regexp // matches a printed line
	alike *regexp.Regexp // matches a printed line with placeholders
}

// wantedLines returns the lines of a block, except for empty lines and placeholders for any lines.
func wantedLines(text string, first int) []wanted {
	var lines []wanted
	for i, line := range strings.Split(text, "\n") {
		if squeezed := squeeze(line); squeezed != "" && squeezed != anything {
			lines = append(lines, wanted{first + i, line, wildcard(squeezed), wildcard(alike(squeezed))})
		}
	}
	return lines
}

// compare returns the first wanted line that was not printed in its place, or nil if the
// output is correct.
func compare(printed string, want []wanted, anyOrder bool) *wanted {
	lines := strings.Split(printed, "\n")
	for i := range want {
		found := slices.IndexFunc(lines, func(line string) bool {
			line = squeeze(line)
			return want[i].same.MatchString(line) || want[i].alike.MatchString(alike(line))
		})
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

// squeeze replaces white space with single spaces, and trims it at both ends.
func squeeze(line string) string {
	return strings.Join(strings.Fields(line), " ")
}

// alike replaces the parts that differ between runs with placeholders.
func alike(line string) string {
	for _, kind := range kinds {
		line = kind.pattern.ReplaceAllString(line, kind.as)
	}
	return line
}

// wildcard returns a pattern that matches a line in which each … stands for any text.
func wildcard(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), anything, ".*") + "$")
}
