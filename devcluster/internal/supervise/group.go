// SPDX-License-Identifier: Apache-2.0

// Package supervise starts processes, reports when one exits unexpectedly, and stops them
// all.
//
// No process outlives the supervisor: each holds the read end of a pipe and exits when
// the write end is closed (see OnSupervisorExit). Each has a process group of its own, so
// that Ctrl-C in the terminal reaches only the supervisor, which then stops them in
// order.
package supervise

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Group is a set of processes that run and stop together.
type Group struct {
	lifeline *lifeline
	failed   context.CancelCauseFunc

	mu       sync.Mutex
	stopping bool
	running  map[string]*process
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// ExitError says that a process exited without being stopped.
type ExitError struct {
	Name string
	// State is the description of the operating system: "exit status 1", "signal:
	// killed".
	State string
	// Log is the path of the file with the process' output.
	Log string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s exited unexpectedly (%s)", e.Name, e.State)
}

// NewGroup returns an empty group. The returned context is cancelled when a process exits
// unexpectedly; its cause is then an *ExitError.
func NewGroup(ctx context.Context) (*Group, context.Context, error) {
	l, err := newLifeline()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{lifeline: l, failed: cancel, running: map[string]*process{}}, ctx, nil
}

// Start runs this program again with the given arguments, and appends its output to the
// file log.
func (g *Group) Start(name string, args, env []string, log string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of this program: %w", err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer out.Close()

	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return g.start(name, cmd, log)
}

func (g *Group) start(name string, cmd *exec.Cmd, log string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return fmt.Errorf("starting %s: the group is stopping", name)
	}
	g.lifeline.attach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	g.running[name] = p
	go g.wait(p, log)
	return nil
}

func (g *Group) wait(p *process, log string) {
	_ = p.cmd.Wait() // the state contains what the error says
	close(p.done)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopping {
		g.failed(&ExitError{Name: p.name, State: p.cmd.ProcessState.String(), Log: log})
	}
}

// Stop stops the processes in waves: with SIGTERM, then with SIGKILL after grace or as
// soon as ctx is done. Processes in no wave are stopped last. When it returns, all have
// ended.
func (g *Group) Stop(ctx context.Context, grace time.Duration, waves ...[]string) {
	g.mu.Lock()
	g.stopping = true
	rest := make(map[string]*process, len(g.running))
	maps.Copy(rest, g.running)
	g.mu.Unlock()

	for _, names := range waves {
		var wave []*process
		for _, name := range names {
			if p, ok := rest[name]; ok {
				wave = append(wave, p)
				delete(rest, name)
			}
		}
		stopAll(ctx, grace, wave)
	}
	last := make([]*process, 0, len(rest))
	for _, p := range rest {
		last = append(last, p)
	}
	stopAll(ctx, grace, last)
	g.lifeline.close()
}

func stopAll(ctx context.Context, grace time.Duration, processes []*process) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, p := range processes {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range processes {
		select {
		case <-p.done:
		case <-ctx.Done():
			p.signal(syscall.SIGKILL)
			<-p.done
		}
	}
}

// signal sends a signal to the process and its children. It ignores that they may have
// ended.
func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// attach passes the read end to a command as its first extra file, which is descriptor 3
// in the child.
func (l *lifeline) attach(cmd *exec.Cmd) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.ExtraFiles = []*os.File{l.read}
	cmd.Env = append(cmd.Env, lifelineEnv+"=3")
}
