// SPDX-License-Identifier: Apache-2.0

// Shell sessions that span all blocks of a document.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the time after which Ctrl-C is sent a second time, because bash loses a
// Ctrl-C that arrives while it starts a program, and from then on the time until the
// program is killed.
const patience = 15 * time.Second

// prelude joins many blocks into one session. Each block begins with the folder,
// variables and functions that the one before saved in the file $0. $1 is the block. A
// failing command ends the block, and its line is written to $0.line. BASH_ARGV0 is not
// saved: reading it back would set $0, and a background block would then overwrite the
// session of another.
const prelude = `
unset BASH_ARGV0
if [[ -e $0 ]]; then source "$0" 2>/dev/null || true; fi
trap '{ declare -p; declare -f; printf "cd %q\n" "$PWD"; } >"$0.new" && mv "$0.new" "$0"' EXIT
trap 'echo "$LINENO" >"$0.line"' ERR
set -e -o pipefail
source "$1"
`

// shell runs commands in sessions, called terminals. It is used by one goroutine.
type shell struct {
	scratch string   // folder of the session's files
	start   string   // the folder in which each terminal begins
	env     []string // of each command
	jobs    []*job   // all that were started
	// leader only keeps a process group alive, that of all blocks that are not in the
	// background, so that no other group gets its ID. Processes that a block left behind can
	// thus be killed long after the block has ended.
	leader *exec.Cmd
}

// job is a command block that was started.
type job struct {
	command *exec.Cmd
	group   int    // ID of the process group
	log     string // file of its output
	state   string // file of its session
	done    chan struct{}
	stopped bool
}

// newShell starts a shell. The caller must close it.
func newShell(scratch, start string, env []string) (*shell, error) {
	s := &shell{scratch: scratch, start: start, env: env, leader: exec.Command("cat")}
	s.leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// cat ends with this process at the latest, because this closes its standard input.
	if _, err := s.leader.StdinPipe(); err != nil {
		return nil, err
	}
	return s, s.leader.Start()
}

// stateOf returns the file that holds a terminal's session.
func (s *shell) stateOf(terminal string) string {
	return filepath.Join(s.scratch, "terminal-"+terminal)
}

// begin starts a block in a terminal. A background block gets a copy of the session, and a
// process group of its own.
func (s *shell) begin(terminal, script string, background bool) (*job, error) {
	name := filepath.Join(s.scratch, strconv.Itoa(len(s.jobs)))
	j := &job{log: name + ".log", state: s.stateOf(terminal), group: s.leader.Process.Pid, done: make(chan struct{})}
	if err := os.RemoveAll(j.state + ".line"); err != nil {
		return nil, err
	}
	if background {
		state, err := os.ReadFile(j.state)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		j.group, j.state = 0, name+".state"
		if err := os.WriteFile(j.state, state, 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(name+".sh", []byte(script), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(j.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	j.command = exec.Command("bash", "--noprofile", "--norc", "-c", prelude, j.state, name+".sh")
	j.command.Dir, j.command.Env = s.start, s.env
	j.command.Stdout, j.command.Stderr = log, log
	j.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: j.group}
	if err := j.command.Start(); err != nil {
		return nil, fmt.Errorf("bash: %w", err)
	}
	s.jobs = append(s.jobs, j)
	if background {
		j.group = j.command.Process.Pid
	}
	go func() {
		defer close(j.done)
		_ = j.command.Wait() // its ProcessState holds the result
		if background {
			j.signal(syscall.SIGKILL) // kills processes that it left behind
		}
	}()
	return j, nil
}

// export sets a variable in all existing and future terminals.
func (s *shell) export(name, value string) error {
	s.env = append(s.env, name+"="+value)
	states, err := filepath.Glob(s.stateOf("*"))
	for _, state := range states {
		text, readErr := os.ReadFile(state)
		text = fmt.Appendf(text, "export %s=%q\n", name, value)
		err = errors.Join(err, readErr, os.WriteFile(state, text, 0o600))
	}
	return err
}

// ended reports whether the job has ended.
func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// exitCode returns the exit code of a job that has ended, or -1 if a signal ended it.
func (j *job) exitCode() int { return j.command.ProcessState.ExitCode() }

// output returns what the job has printed so far.
func (j *job) output() string {
	text, err := os.ReadFile(j.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// failedLine returns the number of the line that failed, counted from 1, or 0 if it is
// unknown.
func (j *job) failedLine() int {
	text, err := os.ReadFile(j.state + ".line")
	if err != nil {
		return 0
	}
	line, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if it is no number
	return line
}

// interrupt sends Ctrl-C to a job, and kills the job if it does not end.
func (j *job) interrupt() error {
	j.stopped = true
	for range 2 {
		j.signal(syscall.SIGINT)
		select {
		case <-j.done:
			return nil
		case <-time.After(patience):
		}
	}
	j.signal(syscall.SIGKILL)
	<-j.done
	return fmt.Errorf("it was still running %v after Ctrl-C, and was killed", 2*patience)
}

// signal sends a signal to the job's process group. It ignores the error if no process is
// left.
func (j *job) signal(signal syscall.Signal) { _ = syscall.Kill(-j.group, signal) }

// close ends all jobs that still run, the last first, and what the others left behind.
func (s *shell) close() error {
	var errs []error
	for _, j := range slices.Backward(s.jobs) {
		if !j.ended() {
			errs = append(errs, j.interrupt())
		}
	}
	_ = syscall.Kill(-s.leader.Process.Pid, syscall.SIGKILL)
	_ = s.leader.Wait() // it was killed
	return errors.Join(errs...)
}
