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

// Package process runs the programs that are measured, and reads from /proc what
// they cost.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// stopGrace is how long a program gets to end by itself.
	stopGrace = 10 * time.Second
	// logTail is how much of a program's log is shown when it has died.
	logTail = 2000
)

// Process is a program that runs.
type Process struct {
	Name    string
	Started time.Time
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// Start starts a program whose output goes to a file, with env added to the
// benchmark's own environment. It ends with the benchmark.
func Start(name, log, path string, env []string, args ...string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	command := exec.Command(path, args...) // stopped by Stop, which lets it end by itself
	command.Env = append(os.Environ(), env...)
	command.Stdout, command.Stderr = output, output
	p := &Process{Name: name, command: command, log: log, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends.
		runtime.LockOSThread()
		endWithParent(command)
		p.Started = time.Now()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // Running tells of an end
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running returns an error, with the end of the log, if the program has ended.
func (p *Process) Running() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	content, err := os.ReadFile(p.log)
	if err != nil {
		content = []byte(err.Error())
	}
	return fmt.Errorf("%s ended by itself (%v); the end of its log:\n%s", p.Name, p.command.ProcessState,
		strings.TrimSpace(string(content[max(0, len(content)-logTail):])))
}

// Usage is what a process has cost since its start.
type Usage struct {
	// CPU is its time in user and system mode, in steps of 10 ms.
	CPU time.Duration
	// Peak and Resident are bytes of memory: the most so far, and now.
	Peak, Resident uint64
}

// Usage reads what the program has cost.
func (p *Process) Usage() (Usage, error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	proc, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return Usage{}, err
	}
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errStat, errStatus); err != nil {
		return Usage{}, fmt.Errorf("reading what %s costs: %w", p.Name, err)
	}
	return Usage{
		CPU:      time.Duration(stat.CPUTime() * float64(time.Second)),
		Peak:     status.VmHWM,
		Resident: status.VmRSS,
	}, nil
}

// Stop ends the program: by SIGTERM, then by force.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
	}
}
