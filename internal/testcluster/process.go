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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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
