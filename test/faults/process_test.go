// SPDX-License-Identifier: Apache-2.0

// The process of a controller under test.

package faults

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"example.com/sample-controller/test/testcluster"
)

// stopTime bounds how long a controller may take to stop. Ours gives syncs under way 20
// seconds.
const stopTime = 40 * time.Second

// process is a controller that can be killed and restarted.
type process struct {
	path  string
	args  []string
	env   []string // in addition to the test's
	log   testcluster.Log
	mu    sync.Mutex
	run   *testcluster.Process
	ended bool // for good
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
	command.Env = append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true"), p.env...)
	command.Stdout, command.Stderr = &p.log, &p.log
	run, err := testcluster.StartProcess(command)
	if err == nil {
		p.run = run
	}
	return err
}

func (p *process) current() *testcluster.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// signal sends a signal to the program.
func (p *process) signal(s syscall.Signal) {
	if run := p.current(); run != nil {
		_ = run.Signal(s)
	}
}

// kill ends the program with SIGKILL, and returns when it has ended.
func (p *process) kill() {
	if run := p.current(); run != nil {
		run.Kill()
	}
}

// crash kills the program and starts it again.
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

// exitCode waits until the program ends by itself and returns its exit code, or -1 if it
// does not end in time.
func (p *process) exitCode() int {
	run := p.current()
	if !run.Wait(stopTime) {
		return -1
	}
	return run.State().ExitCode()
}

func (p *process) hasEnded() bool { return p.current().HasEnded() }
