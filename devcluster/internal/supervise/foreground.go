// SPDX-License-Identifier: Apache-2.0

// The foreground command: the user's command, which the supervisor runs.

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding the path of this program: %w", err)
	}
	args := append([]string{ExecSubcommand}, command...)
	cmd := exec.Command(self, args...) // without ctx, which would kill it at once
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if ownsTerminal() {
		// Otherwise a command that reads the terminal would be stopped as a background
		// job.
		cmd.SysProcAttr.Foreground = true
		defer takeTerminalBack()
	}
	g.lifeline.attach(cmd)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", command[0], err)
	}
	p := &process{name: command[0], cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state contains what the error says
		close(p.done)
	}()
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
