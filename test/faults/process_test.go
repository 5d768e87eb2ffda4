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

package faults

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTime bounds how long a controller may take to stop: ours gives the syncs
// under way 20 seconds.
const stopTime = 40 * time.Second

// process is a controller that can be killed and started again.
type process struct {
	path  string
	args  []string
	log   *logText
	mu    sync.Mutex
	run   *running
	ended bool // for good
}

type running struct {
	command *exec.Cmd
	done    chan struct{}
}

var errEnded = errors.New("the trial is over")

// start starts the program, unless the trial is over.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errEnded
	}
	command := exec.Command(p.path, p.args...)
	command.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true")
	command.Stdout, command.Stderr = p.log, p.log
	if err := command.Start(); err != nil {
		return err
	}
	r := &running{command: command, done: make(chan struct{})}
	go func() {
		_ = command.Wait() // the exit code is in the command's ProcessState
		close(r.done)
	}()
	p.run = r
	return nil
}

func (p *process) current() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// signal sends a signal to the program.
func (p *process) signal(s syscall.Signal) {
	if r := p.current(); r != nil {
		_ = r.command.Process.Signal(s) // it may have ended
	}
}

// kill ends the program without a chance to do anything, and returns when it is gone.
func (p *process) kill() {
	if r := p.current(); r != nil {
		_ = r.command.Process.Kill()
		<-r.done
	}
}

// crash is kill, and a new start.
func (p *process) crash() {
	p.kill()
	_ = p.start() // refused only at the end of the trial
}

// close kills the program for good.
func (p *process) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.kill()
}

// exitCode waits until the program has ended by itself, and returns -1 if it has not in time.
func (p *process) exitCode() int {
	r := p.current()
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.command.ProcessState.ExitCode()
	case <-timer.C:
		return -1
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.current().done:
		return true
	default:
		return false
	}
}

// logText keeps what a program prints.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail returns the last lines.
func (l *logText) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
