// SPDX-License-Identifier: Apache-2.0

// Package supervise starts processes, reports when one exits unexpectedly, and stops them
// all.
//
// No process outlives the supervisor: each holds the read end of a pipe and exits when
// the write end is closed (see OnSupervisorExit). Each has its own process group, so that
// Ctrl-C in the terminal reaches only the supervisor, which then stops them in order.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a set of processes that run and stop together.
type Group struct {
	// A pipe without writes. Each child holds the read end. Only the supervisor holds the write
	// end, which the operating system closes however the supervisor dies, including by SIGKILL.
	read, write *os.File
	failed      context.CancelCauseFunc

	mu       sync.Mutex
	stopping bool
	running  map[string]*process
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Failure says that a process has exited without being stopped, or did not become ready.
type Failure struct {
	Err error
	// Log is the path of the file with the process' output.
	Log string
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// NewGroup returns an empty group. The returned context is canceled when a process exits
// unexpectedly; its cause is then a *Failure.
func NewGroup(ctx context.Context) (*Group, context.Context, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("creating the lifeline of the components: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{read: read, write: write, failed: cancel, running: map[string]*process{}}, ctx, nil
}

// Start runs this program again with the given arguments, and appends its output to the
// file log.
func (g *Group) Start(name string, args, env []string, log string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd, err := g.again(args, env)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return fmt.Errorf("starting %s: the group is stopping", name)
	}
	p, err := begin(name, cmd, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.stopping {
			g.failed(&Failure{Err: fmt.Errorf("%s exited unexpectedly (%s)", name, cmd.ProcessState), Log: log})
		}
	})
	if err != nil {
		return err
	}
	g.running[name] = p
	return nil
}

// again returns the command that runs this program again, as one that ends with it.
func (g *Group) again(args, env []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the path of this program: %w", err)
	}
	cmd := exec.Command(self, args...) // without a context, which would kill it at once
	// The first extra file is descriptor 3 in the child.
	cmd.ExtraFiles = []*os.File{g.read}
	cmd.Env = append(append(os.Environ(), env...), lifelineEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// begin starts a process. When it has ended, its done is closed, and ended called.
func begin(name string, cmd *exec.Cmd, ended func()) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state contains what the error says
		close(p.done)
		ended()
	}()
	return p, nil
}

// Stop stops the processes in waves: with SIGTERM, then with SIGKILL after grace or as
// soon as ctx is done. Processes in no wave are stopped last. When it returns, all have
// ended.
func (g *Group) Stop(ctx context.Context, grace time.Duration, waves ...[]string) {
	g.mu.Lock()
	g.stopping = true
	rest := maps.Clone(g.running)
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
	stopAll(ctx, grace, slices.Collect(maps.Values(rest)))
	_, _ = g.read.Close(), g.write.Close()
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

// ExecSubcommand is the first argument with which this program runs Exec.
const ExecSubcommand = "exec"

// RunForeground runs a user's command with the standard streams of this process, and
// returns its exit code, or 128 + n if signal n ended it. If ctx is done first, the
// command's process group gets SIGTERM, and SIGKILL after grace or when kill is done.
// What is left in the process group after that is killed, and may end a moment after
// RunForeground returns.
//
// A copy of this program runs between the supervisor and the command (see Exec). It kills
// the command when the supervisor dies.
func (g *Group) RunForeground(ctx, kill context.Context, grace time.Duration, command, env []string) (int, error) {
	cmd, err := g.again(append([]string{ExecSubcommand}, command...), env)
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if ownsTerminal() {
		// Otherwise a command that reads the terminal would be stopped as a background
		// job.
		cmd.SysProcAttr.Foreground = true
		defer takeTerminalBack()
	}
	p, err := begin(command[0], cmd, func() {})
	if err != nil {
		return 0, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		stopAll(kill, grace, []*process{p})
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return exitCode(cmd.ProcessState), nil
}

// Exec runs a command and returns its exit code. It expects to lead a process group of
// its own, and kills that group when its supervisor has died.
func Exec(command []string) int {
	OnSupervisorExit(func() { _ = syscall.Kill(0, syscall.SIGKILL) })
	// A signal to the group also reaches the command, which decides what it means. This
	// uses Notify and not Ignore, because a child would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState != nil {
		return exitCode(cmd.ProcessState)
	}
	fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
	if errors.Is(err, os.ErrPermission) {
		return 126
	}
	return 127
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// ownsTerminal reports whether standard input is a terminal and this process group is in
// its foreground.
func ownsTerminal() bool {
	foreground, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == syscall.Getpgrp()
}

// takeTerminalBack puts this process group into the foreground of the terminal again.
func takeTerminalBack() {
	// A background process that sets the foreground is stopped by SIGTTOU unless it
	// ignores that signal.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, syscall.Getpgrp())
}

// lifelineEnv names the file descriptor that a child watches for the end of its
// supervisor.
const lifelineEnv = "DEVCLUSTER_LIFELINE_FD"

// OnSupervisorExit calls f when the supervisor that started this process has died. main
// must call it before anything else. It does nothing in a process without a supervisor.
func OnSupervisorExit(f func()) {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return
	}
	// The variable and the descriptor are not for this process' children.
	_ = os.Unsetenv(lifelineEnv)
	syscall.CloseOnExec(fd)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(fd), "lifeline"))
		f()
	}()
}
