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

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stopTime bounds how long a program under test may take to stop: a controller
// gives the syncs under way 20 seconds.
const stopTime = 30 * time.Second

// process is a program under test, as it runs.
type process struct {
	command *exec.Cmd
	log     *processLog
	// ended is closed when the program has.
	ended chan struct{}
}

// startController runs the controller on the namespace until the test ends,
// when it has to stop as one should. More flags may follow.
func (ns *namespace) startController(t *testing.T, flags ...string) *process {
	t.Helper()
	return startController(t, append([]string{"-kubeconfig=" + ns.in.account.kubeconfig, "-namespace=" + ns.name}, flags...)...)
}

// startController runs the controller with these flags alone.
func startController(t *testing.T, flags ...string) *process {
	t.Helper()
	return startControllerIn(t, nil, flags...)
}

// startControllerIn runs the controller with more in its environment.
func startControllerIn(t *testing.T, environment []string, flags ...string) *process {
	t.Helper()
	command := exec.CommandContext(cluster.ctx, cluster.controller, flags...)
	// A controller that changes an object of its caches in place panics.
	command.Env = append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true"), environment...)
	p := startProcess(t, command)
	t.Cleanup(func() {
		if !p.hasEnded() {
			p.stop(t)
		}
	})
	return p
}

// startProcess runs a program. If the test fails its output is shown.
func startProcess(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	p := &process{command: command, log: newProcessLog(), ended: make(chan struct{})}
	command.Stdout = p.log
	command.Stderr = p.log
	if err := command.Start(); err != nil {
		t.Fatalf("Starting %s: %v", command.Path, err)
	}
	go func() {
		defer close(p.ended)
		// The exit code is in the command's ProcessState.
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Output of %v:\n%s", command.Args, p.log)
		}
	})
	return p
}

// stop asks the program to stop: it has to end in time, with exit code 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.exitCode(t); code != 0 {
		t.Errorf("After SIGTERM the exit code is %d, want 0", code)
	}
}

// kill ends the program without giving it a chance to do anything.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.exitCode(t)
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Sending %v to %s: %v", signal, p.command.Path, err)
	}
}

// exitCode waits until the program has ended. It kills one that does not.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
		t.Errorf("%s did not end within %v", p.command.Path, stopTime)
	}
	return p.command.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaitLog waits until the program has printed a text a number of times.
func (p *process) awaitLog(t *testing.T, text string, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.patience())
	defer cancel()
	for {
		changed := p.log.changed()
		if p.log.count(text) >= times {
			return
		}
		select {
		case <-changed:
		case <-p.ended:
			if p.log.count(text) < times {
				t.Fatalf("%s has ended and printed %q %d times, want %d", p.command.Path, text, p.log.count(text), times)
			}
		case <-ctx.Done():
			t.Fatalf("%s has printed %q %d times, waited for %d", p.command.Path, text, p.log.count(text), times)
		}
	}
}

// processLog keeps what a program prints.
type processLog struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write
}

func newProcessLog() *processLog {
	return &processLog{written: make(chan struct{})}
}

func (l *processLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.written)
	l.written = make(chan struct{})
	return l.text.Write(p)
}

// changed returns a channel that is closed at the next write.
func (l *processLog) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

func (l *processLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// lines returns those that have all of some texts.
func (l *processLog) lines(texts ...string) []string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (l *processLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
