// SPDX-License-Identifier: Apache-2.0

// Command skew runs the end-to-end tests on each Kubernetes version that devcluster can
// emulate, one after the other, and writes the results as a table into a document,
// between two comments. It continues after a failure, records the failure in the table,
// and exits non-zero. hack/check.sh e2e with EMULATED_VERSION tests a single version.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Paths, relative to the repository's root.
const (
	document   = "README.md"
	logFolder  = "_output/skew" // the tests' output, one file for each version
	devcluster = "bin/devcluster"
)

// The table is between these marks; only its own lines are replaced.
const (
	beginMark = "<!-- skew: make skew writes this table -->"
	endMark   = "<!-- skew: end -->"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "skew:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, devcluster, "version").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", devcluster, err)
	}
	kubernetes, emulated, err := parseVersions(string(output))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	if _, err := place(string(text), nil); err != nil {
		return err // fail now, and not after the tests have run
	}
	if err := os.MkdirAll(logFolder, 0o750); err != nil {
		return err
	}
	rows := []string{"| Kubernetes | passed | failed | skipped | run with, on |", "|---|---|---|---|---|"}
	failures := 0
	for _, minor := range emulated {
		began := time.Now()
		log := filepath.Join(logFolder, minor+".log")
		fmt.Printf("%s: the output goes to %s\n", minor, log)
		result, err := test(ctx, minor, log)
		if err != nil {
			return err
		}
		if len(result.failed) > 0 {
			failures++
		}
		fmt.Printf("%s: %s in %d s\n", minor, result, int(time.Since(began).Seconds()))
		rows = append(rows, fmt.Sprintf("| %s | %d | %s | %s | %s, %s |", minor, result.passed, list(result.failed), list(result.skipped),
			kubernetes, began.UTC().Format(time.DateOnly)))
	}
	placed, err := place(string(text), rows)
	if err != nil {
		return err
	}
	if err := os.WriteFile(document, []byte(placed), 0o600); err != nil { // an existing file keeps its mode
		return err
	}
	if failures > 0 {
		return fmt.Errorf("tests failed on %d of %d Kubernetes versions", failures, len(emulated))
	}
	return nil
}

// parseVersions parses the output of "devcluster version": the version of its Kubernetes,
// and those that it can emulate, the oldest first.
func parseVersions(text string) (kubernetes string, emulated []string, err error) {
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) == 2 && fields[0] == "Kubernetes":
			kubernetes = fields[1]
		case len(fields) > 1 && fields[0] == "Emulates":
			emulated = fields[1:]
		}
	}
	if kubernetes == "" || emulated == nil {
		err = fmt.Errorf("devcluster version does not list the versions that it emulates:\n%s", text)
	}
	return kubernetes, emulated, err
}

// outcome is the result of the tests on one Kubernetes, subtests included.
type outcome struct {
	passed          int
	failed, skipped []string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", o.passed, len(o.failed), len(o.skipped))
}

// test runs the end-to-end tests on a cluster that emulates a Kubernetes version. Failed
// tests are no error.
func test(ctx context.Context, minor, log string) (outcome, error) {
	file, err := os.Create(log)
	if err != nil {
		return outcome{}, err
	}
	defer file.Close()
	command := exec.CommandContext(ctx, "hack/check.sh", "e2e")
	command.Env = append(os.Environ(), "EMULATED_VERSION="+minor, "GO_TEST_FLAGS=-v", "E2E_KUBECONFIG=")
	command.Stdout, command.Stderr = file, file
	// Signal the whole process group, because bash handles a signal only after its
	// children have ended.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return outcome{}, context.Cause(ctx)
	case err != nil && !errors.As(err, new(*exec.ExitError)):
		return outcome{}, err
	}
	printed, readErr := os.ReadFile(log)
	return count(string(printed), err == nil), readErr
}

// ended matches the line that go test -v prints when a test ends.
var ended = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// count counts the results in the output of go test -v. A run that fails without a failed
// test did not compile, ended early or left something behind. A run that passes without a
// test proves nothing. Both count as failures.
func count(printed string, succeeded bool) outcome {
	var o outcome
	for _, match := range ended.FindAllStringSubmatch(printed, -1) {
		switch match[1] {
		case "PASS":
			o.passed++
		case "FAIL":
			o.failed = append(o.failed, match[2])
		case "SKIP":
			o.skipped = append(o.skipped, match[2])
		}
	}
	switch {
	case !succeeded && len(o.failed) == 0:
		o.failed = []string{"the run itself"}
	case succeeded && o.passed == 0:
		o.failed = []string{"the run itself: no test passed"}
	}
	return o
}

// list returns the number of names, and the names, as the content of a table's cell.
func list(names []string) string {
	if len(names) == 0 {
		return "0"
	}
	return strings.ReplaceAll(fmt.Sprintf("%d: %s", len(names), strings.Join(names, "; ")), "|", `\|`)
}

// place replaces the table in a document.
func place(text string, rows []string) (string, error) {
	before, rest, found := strings.Cut(text, beginMark+"\n")
	_, after, closed := strings.Cut(rest, endMark+"\n")
	if !found || !closed {
		return "", fmt.Errorf("%s has no place for the table: %s and %s", document, beginMark, endMark)
	}
	return before + beginMark + "\n" + strings.Join(rows, "\n") + "\n" + endMark + "\n" + after, nil
}
