// SPDX-License-Identifier: Apache-2.0

// Package testcluster has what the tests and the benchmark share on a real
// control plane: processes and their logs, development clusters, the controller's
// accounts, and waiting. It returns errors, so that programs that are not tests can use
// it.
package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that was started.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
}

// StartProcess starts a program. The thread that starts it lives as long as the program
// does, because with Pdeathsig in a command's SysProcAttr the kernel kills the program
// when that thread ends.
func StartProcess(command *exec.Cmd) (*Process, error) {
	p := &Process{command: command, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.ended)
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // State returns the result.
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Path, err)
	}
	return p, nil
}

// ID returns the process ID.
func (p *Process) ID() int { return p.command.Process.Pid }

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HasEnded reports whether the program has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// State returns how the program ended. Call it only after the end.
func (p *Process) State() *os.ProcessState { return p.command.ProcessState }

// Signal sends a signal to the program. If the program has ended, that is not an error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s: %w", signal, p.command.Path, err)
	}
	return nil
}

// Kill kills the program, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // It may have ended.
	<-p.ended
}

// Wait waits until the program has ended, and reports whether it did within the limit.
func (p *Process) Wait(limit time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// Stop sends SIGTERM to the program, and kills it if it does not end within the grace
// period.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Signal(syscall.SIGTERM) // It may have ended.
	if !p.Wait(grace) {
		p.Kill()
	}
}

// logLines is the number of lines of a program's log that an error contains.
const logLines = 20

// Program is a process that has a name, and a file for its output.
type Program struct {
	*Process
	// Name is the program's name in messages.
	Name string
	log  string
}

// StartProgram starts a program whose output is appended to the file log, or goes to
// standard error if log is empty.
func StartProgram(name, log string, command *exec.Cmd) (*Program, error) {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if log != "" {
		file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		command.Stdout, command.Stderr = file, file
	}
	process, err := StartProcess(command)
	if err != nil {
		return nil, err
	}
	return &Program{Process: process, Name: name, log: log}, nil
}

// Err returns nil while the program runs, and after that an error with the end of its
// log.
func (p *Program) Err() error {
	if !p.HasEnded() {
		return nil
	}
	message := fmt.Sprintf("%s ended by itself (%s)", p.Name, p.State())
	if p.log == "" {
		return fmt.Errorf("%s", message)
	}
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s; its log cannot be read: %w", message, err)
	}
	return fmt.Errorf("%s; the end of its log:\n  %s", message, strings.Join(LastLines(string(content), logLines), "\n  "))
}

// LastLines returns the last n lines of a text.
func LastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[max(0, len(lines)-n):]
}

// Log keeps the output of a program: set it as a command's Stdout and Stderr.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write; nil if no one waits for one
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.text.Write(p)
}

// next returns a channel that is closed at the next write.
func (l *Log) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = make(chan struct{})
	}
	return l.written
}

// Await waits until program p, whose log this is, has printed a text a number of times.
func (l *Log) Await(ctx context.Context, p *Process, text string, times int) error {
	for {
		written := l.next()
		if l.Count(text) >= times {
			return nil
		}
		select {
		case <-written:
		case <-p.Ended():
			if l.Count(text) < times {
				return fmt.Errorf("%s has ended (%v) and printed %q %d times, want %d", p.command.Path, p.State(), text, l.Count(text), times)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s has printed %q %d times, waited for %d: %w", p.command.Path, text, l.Count(text), times, context.Cause(ctx))
		}
	}
}

// Count returns how often the log contains a text.
func (l *Log) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// String returns everything that was printed.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
