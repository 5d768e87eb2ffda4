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
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// outcome is the result of the tests on one Kubernetes, subtests included.
type outcome struct {
	passed  int
	failed  []string
	skipped []string // each with its reason
}

func (o outcome) ok() bool { return len(o.failed) == 0 }

func (o outcome) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", o.passed, len(o.failed), len(o.skipped))
}

// test runs the end-to-end tests on a cluster that emulates a Kubernetes. Tests that fail are no error.
func test(ctx context.Context, minor, logPath string, progress io.Writer) (outcome, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return outcome{}, err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, "hack/check.sh", "e2e")
	command.Env = append(os.Environ(), "EMULATED_VERSION="+minor, "GO_TEST_FLAGS=-json", "E2E_KUBECONFIG=")
	// A signal goes to the script's children as well: bash itself looks at one only when they have ended.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.Stderr = log
	out, err := command.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := command.Start(); err != nil {
		return outcome{}, err
	}
	seen := newTally(minor, log, progress)
	readErr := seen.read(out)
	waitErr := command.Wait()
	switch {
	case ctx.Err() != nil:
		return outcome{}, context.Cause(ctx)
	case readErr != nil:
		return outcome{}, readErr
	case waitErr != nil && !errors.As(waitErr, new(*exec.ExitError)):
		return outcome{}, waitErr
	}
	return seen.outcome(waitErr == nil), nil
}

// event is a line that go test -json prints.
type event struct {
	Action, Test, Output string
}

// tally counts events.
type tally struct {
	minor         string
	log, progress io.Writer
	began         time.Time
	tests         int // that have ended, without subtests
	passed        int
	failed        []string
	skipped       []string
	says          map[string]string // what a test that goes on has said last
}

func newTally(minor string, log, progress io.Writer) *tally {
	return &tally{minor: minor, log: log, progress: progress, began: time.Now(), says: map[string]string{}}
}

// read reads events to the end. Lines that are none go to the log.
func (y *tally) read(lines io.Reader) error {
	reader := bufio.NewReader(lines)
	for {
		line, err := reader.ReadBytes('\n')
		var one event
		if json.Unmarshal(line, &one) != nil {
			one = event{Action: "output", Output: string(line)}
		}
		if writeErr := y.add(one); writeErr != nil {
			return writeErr
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// said is what a test says of why it fails or is skipped.
var said = regexp.MustCompile(`^\s+\S+_test\.go:[0-9]+: (.+)\n`)

// every is after how many tests there is a line of progress.
const every = 25

func (y *tally) add(one event) error {
	if one.Action == "output" {
		if match := said.FindStringSubmatch(one.Output); match != nil {
			y.says[one.Test] = match[1]
		}
		_, err := io.WriteString(y.log, one.Output)
		return err
	}
	if one.Test == "" {
		return nil
	}
	switch one.Action {
	case "pass":
		y.passed++
	case "fail":
		y.failed = append(y.failed, one.Test)
		fmt.Fprintf(y.progress, "%s: FAIL: %s\n", y.minor, one.Test)
	case "skip":
		y.skipped = append(y.skipped, one.Test+": "+cmp.Or(y.says[one.Test], "no reason given"))
	default:
		return nil
	}
	delete(y.says, one.Test)
	if strings.Contains(one.Test, "/") {
		return nil
	}
	if y.tests++; y.tests%every == 0 {
		fmt.Fprintf(y.progress, "%s: %d tests in %d s\n", y.minor, y.tests, int(time.Since(y.began).Seconds()))
	}
	return nil
}

// outcome is the result, at the end of a run. One that failed without a test's failure failed all the same: it was not
// built, or ended early, or something was left behind.
func (y *tally) outcome(succeeded bool) outcome {
	failed := slices.DeleteFunc(slices.Clone(y.failed), func(name string) bool {
		return slices.ContainsFunc(y.failed, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	switch {
	case !succeeded && len(failed) == 0:
		failed = []string{"the run itself"}
	case succeeded && y.passed == 0:
		failed = []string{"the run itself: no test passed"}
	}
	return outcome{passed: y.passed, failed: failed, skipped: y.skipped}
}
