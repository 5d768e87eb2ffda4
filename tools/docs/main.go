// SPDX-License-Identifier: Apache-2.0

// Command docs runs the command blocks of documents, and compares their output with that
// in the documents. make docs-test runs it; README.md says how to mark a document.
// docs/claims tests what else the documents say about the code (names of tests and files,
// the requirements of go.mod).
//
// This file executes the steps of a document. document.go makes them, report.go compares
// outputs and reports the results, sandbox.go copies the tree, and shell.go runs bash in
// the copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The period of checks for new output, and of repeating a block until it prints the
// wanted output.
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
	// The last block, and the blocks with an id.
	last       *block
	blocks     map[string]*block
	background []*block
	cluster    *job
}

// block is a command block that was started or skipped.
type block struct {
	step    step
	job     *job
	skipped bool
}

func newRunner(name string, box *sandbox) *runner {
	return &runner{
		name:    name,
		sandbox: box,
		shell:   &shell{scratch: box.in("run"), start: box.copy, env: box.env},
		blocks:  map[string]*block{},
	}
}

// close stops what the document left running.
func (r *runner) close() error { return r.shell.close() }

// at returns the position of a line of the document, in the format of compilers.
func (r *runner) at(line int) string { return fmt.Sprintf("%s:%d", r.name, line) }

// do executes one step. If the step is skipped, do returns the reason.
func (r *runner) do(ctx context.Context, s step) (skipped string, err error) {
	if s.run.skip != "" {
		r.remember(&block{step: s, skipped: true})
		return s.run.skip, nil
	}
	switch s.kind {
	case stepBefore:
		return "", r.before(ctx, s.run.before)
	case stepRun:
		if err := r.before(ctx, s.run.before); err != nil {
			return "", err
		}
		b := &block{step: s}
		r.remember(b)
		return "", r.runBlock(ctx, b)
	case stepExpect:
		return r.expect(ctx, s)
	case stepFile:
		return "", r.writeFile(ctx, s)
	case stepPatch:
		return "", r.applyPatch(ctx, s)
	default:
		return "", nil
	}
}

func (r *runner) remember(b *block) {
	r.last = b
	if b.step.run.id != "" {
		r.blocks[b.step.run.id] = b
	}
}

// find returns the block with an id, or the last one if id is empty.
func (r *runner) find(id string) (*block, error) {
	b := r.last
	if id != "" {
		b = r.blocks[id]
	}
	if b == nil {
		return nil, fmt.Errorf("no block %q has been run before this", id)
	}
	return b, nil
}

// runBlock runs a block to its end, or starts it in the background.
func (r *runner) runBlock(ctx context.Context, b *block) error {
	ctx, cancel := context.WithTimeout(ctx, b.step.run.timeout)
	defer cancel()
	job, err := r.shell.begin(b.step.run.terminal, b.step.text, b.step.run.background)
	if err != nil {
		return err
	}
	b.job = job
	if b.step.run.background {
		r.background = append(r.background, b)
		return r.waitUntil(ctx, b)
	}
	select {
	case <-job.done:
	case <-ctx.Done():
		err := job.interrupt()
		return r.failure(b, errors.Join(fmt.Errorf("took longer than %v", b.step.run.timeout), err))
	}
	code := job.exitCode()
	switch {
	case (code != 0) == b.step.run.fails:
		return nil
	case code == 0:
		return r.failure(b, errors.New("should have failed, but did not"))
	}
	err = fmt.Errorf("exit code %d", code)
	lines := strings.Split(b.step.text, "\n")
	if n := job.failedLine(); n > 0 && n <= len(lines) {
		err = fmt.Errorf("%w, at %s: %s", err, r.at(b.step.first+n-1), lines[n-1])
	}
	return r.failure(b, err)
}

// waitUntil waits until a background block has printed the text of its option until.
func (r *runner) waitUntil(ctx context.Context, b *block) error {
	for b.step.run.until != "" {
		if strings.Contains(b.job.output(), b.step.run.until) {
			return nil
		}
		if b.job.ended() {
			return r.failure(b, fmt.Errorf("exited with code %d before it printed %q", b.job.exitCode(), b.step.run.until))
		}
		select {
		case <-ctx.Done():
			return r.failure(b, fmt.Errorf("did not print %q within %v", b.step.run.until, b.step.run.timeout))
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// failure adds the output of a block to an error.
func (r *runner) failure(b *block, err error) error {
	return fmt.Errorf("%w\nprinted by %s:\n%s", err, r.at(b.step.line), indent(r.clean(b.job.output())))
}

// expect compares the output of a block with the document.
func (r *runner) expect(ctx context.Context, s step) (skipped string, err error) {
	b, err := r.find(s.prints.of)
	if err != nil || b.skipped {
		return "the block that prints it is skipped", err
	}
	within := s.prints.within
	if b.step.run.background && within == 0 {
		within = afterBackground
	}
	deadline, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	want := wantedLines(s.text, s.first)
	for {
		printed := r.clean(b.job.output())
		missing := compare(printed, want, s.prints.anyOrder)
		if missing == nil {
			return "", nil
		}
		pause := retryEvery
		if b.step.run.background {
			pause = lookEvery
		}
		select {
		case <-deadline.Done():
			return "", r.failure(b, fmt.Errorf("not printed: %s: %s", r.at(missing.line), missing.text))
		case <-time.After(pause):
		}
		if !b.step.run.background {
			if err := r.runBlock(ctx, b); err != nil {
				return "", err
			}
		}
	}
}

// clean replaces the paths of the copy and of the home folder by those in the documents.
func (r *runner) clean(printed string) string {
	return strings.NewReplacer(r.sandbox.copy, "~/sample-controller", r.sandbox.home, "~").Replace(printed)
}

// writeFile writes a block to a file. The terminal's shell expands the file's name.
func (r *runner) writeFile(ctx context.Context, s step) error {
	content, err := r.keep(s)
	if err != nil {
		return err
	}
	s.text = fmt.Sprintf("mkdir -p -- \"$(dirname -- %s)\"\ncp -- %s %s\n", s.path, content, s.path)
	return r.runBlock(ctx, &block{step: s})
}

// applyPatch applies a block to the repository that the terminal's shell is in.
func (r *runner) applyPatch(ctx context.Context, s step) error {
	patch, err := r.keep(s)
	if err != nil {
		return err
	}
	s.text = fmt.Sprintf("git -C \"$(git rev-parse --show-toplevel)\" apply -- %s\n", patch)
	return r.runBlock(ctx, &block{step: s})
}

// keep writes the text of a step to a file outside the copy, and returns its name.
func (r *runner) keep(s step) (string, error) {
	name := r.sandbox.in("run", fmt.Sprintf("line-%d", s.line))
	return name, os.WriteFile(name, []byte(s.text), 0o600)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// upTimeout is how long a cluster may take to start.
const upTimeout = 3 * time.Minute

// before interrupts a background block and starts a cluster, as far as the options ask
// for it.
func (r *runner) before(ctx context.Context, options beforeOptions) error {
	if options.interrupt {
		if err := r.interrupt(options.victim); err != nil {
			return err
		}
	}
	if options.cluster {
		return r.startCluster(ctx)
	}
	return nil
}

// interrupt ends a background block like Ctrl-C.
func (r *runner) interrupt(id string) error {
	for _, b := range slices.Backward(r.background) {
		if b.job.stopped || id != "" && b.step.run.id != id {
			continue
		}
		if b.job.ended() {
			return r.failure(b, fmt.Errorf("should still be running, but has exited with code %d", b.job.exitCode()))
		}
		if err := b.job.interrupt(); err != nil {
			return r.failure(b, err)
		}
		return nil
	}
	return fmt.Errorf("nothing to interrupt: no block %q is in the background", id)
}

// startCluster starts a cluster for the rest of the document. It stops the cluster that
// the document has, if any.
func (r *runner) startCluster(ctx context.Context) error {
	if r.cluster != nil {
		if err := r.cluster.interrupt(); err != nil {
			return err
		}
	}
	kubeconfig, data := filepath.Join(r.sandbox.home, ".kube", "config"), filepath.Join(r.sandbox.home, "devcluster")
	b := &block{step: step{
		run:  runOptions{terminal: "cluster", background: true, until: "export KUBECONFIG=", timeout: upTimeout},
		text: fmt.Sprintf("mkdir -p %q\nexec bin/devcluster up -data-dir=%q -kubeconfig=%q\n", filepath.Dir(kubeconfig), data, kubeconfig),
	}}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	job, err := r.shell.begin("cluster", b.step.text, true)
	if err != nil {
		return err
	}
	b.job, r.cluster = job, job
	if err := r.waitUntil(ctx, b); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := r.shell.export("AUDIT_LOG", filepath.Join(data, "audit.log")); err != nil {
		return err
	}
	return r.shell.export("KUBECONFIG", kubeconfig)
}

// options are the command's flags.
type options struct {
	root string
	only string
	keep bool
	v    bool
}

func main() {
	var opts options
	flag.StringVar(&opts.root, "root", ".", "Root of the tree.")
	flag.StringVar(&opts.only, "only", "", "Comma-separated documents to run, such as docs/tour.md. If empty: all.")
	flag.BoolVar(&opts.keep, "keep", false, "Keep the copies of the tree, and print their paths.")
	flag.BoolVar(&opts.v, "v", false, "Print the output of each block.")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "docs: unexpected argument %q: this command takes flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	err := runAll(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		}
		os.Exit(1)
	}
}
