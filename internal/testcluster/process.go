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

// Package testcluster has what tests, benchmark and demo need on a real control plane: programs that run and their logs, development
// clusters, accounts for the controller, and waiting. It fails no test itself: it returns errors.
package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
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

// StartProcess starts a program. The thread that starts it lives as long as the program does, because with Pdeathsig in a command's
// SysProcAttr the kernel kills the program when that thread ends.
func StartProcess(command *exec.Cmd) (*Process, error) {
	p := &Process{command: command, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.ended)
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // State says how it ended.
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Path, err)
	}
	return p, nil
}

// ID returns the number of the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Args returns the command line, with the program's name or path first.
func (p *Process) Args() []string { return p.command.Args }

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

// State says how the program ended. It must have.
func (p *Process) State() *os.ProcessState { return p.command.ProcessState }

// Signal sends a signal to the program. That it has ended is no error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s: %w", signal, p.command.Path, err)
	}
	return nil
}

// Kill ends the program without a chance to do anything, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // It may have ended.
	<-p.ended
}

// Wait waits until the program has ended, and reports whether it did within the limit.
func (p *Process) Wait(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// Stop asks the program to end, by SIGTERM, and kills it if it has not ended within the grace period.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Signal(syscall.SIGTERM) // It may have ended.
	if !p.Wait(grace) {
		p.Kill()
	}
}

// logLines is how many lines of a program's log an error has.
const logLines = 20

// Program is a process that has a name, and a file for what it prints.
type Program struct {
	*Process
	// Name is what messages call it.
	Name string
	log  string
}

// StartProgram starts a program whose output is appended to the file log, or goes to standard error if log is empty.
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

// Err returns nil while the program runs, and then an error with the end of its log.
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

// Log keeps what a program prints: give it to a command as Stdout and Stderr.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write; nil if nobody waits for one
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

// Await waits until the program, whose log this is, has printed a text a number of times.
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

// Count counts how often a text was printed.
func (l *Log) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// Lines returns the lines that contain all of some texts.
func (l *Log) Lines(texts ...string) []string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
