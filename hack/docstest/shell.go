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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a program that was asked to end is given.
const patience = 30 * time.Second

// prelude makes one session of many blocks: each begins with folder, variables and functions that the one before left
// in the file $0. $1 is the block. A command that fails ends it, and $0.line says in which line.
const prelude = `
if [[ -e $0 ]]; then source "$0" 2>/dev/null || true; fi
trap '{ declare -p; declare -f; printf "cd %q\n" "$PWD"; } >"$0.new" && mv "$0.new" "$0"' EXIT
trap 'echo "$LINENO" >"$0.line"' ERR
set -e -o pipefail
source "$1"
`

// shell runs commands in sessions, called terminals. It is used by one goroutine.
type shell struct {
	scratch string   // where its files are
	start   string   // the folder in which each terminal begins
	env     []string // of each command
	jobs    []*job   // all that were started
}

// job is a command block that was started.
type job struct {
	command *exec.Cmd
	log     string // file of its output
	state   string // file of its session
	done    chan struct{}
	stopped bool
}

// stateOf is the file that keeps a terminal's session.
func (s *shell) stateOf(terminal string) string {
	return filepath.Join(s.scratch, "terminal-"+terminal)
}

// begin starts a block in a terminal. In the background it has a copy of the session.
func (s *shell) begin(terminal, script string, background bool) (*job, error) {
	name := filepath.Join(s.scratch, strconv.Itoa(len(s.jobs)))
	j := &job{log: name + ".log", state: s.stateOf(terminal), done: make(chan struct{})}
	if background {
		state, err := os.ReadFile(j.state)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		j.state = name + ".state"
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
	j.command.SysProcAttr = ownGroup()
	if err := j.command.Start(); err != nil {
		return nil, fmt.Errorf("bash: %w", err)
	}
	s.jobs = append(s.jobs, j)
	go func() {
		defer close(j.done)
		_ = j.command.Wait() // its ProcessState has it
	}()
	return j, nil
}

// export sets a variable in each terminal, those that exist already included.
func (s *shell) export(name, value string) error {
	s.env = append(s.env, name+"="+value)
	states, err := filepath.Glob(s.stateOf("*"))
	for _, state := range states {
		if strings.HasSuffix(state, ".line") {
			continue
		}
		file, openErr := os.OpenFile(state, os.O_APPEND|os.O_WRONLY, 0)
		if openErr != nil {
			return openErr
		}
		_, writeErr := fmt.Fprintf(file, "export %s=%q\n", name, value)
		err = errors.Join(err, writeErr, file.Close())
	}
	return err
}

// wait returns when the job has ended, and whether it has; ctx limits it.
func (j *job) wait(ctx context.Context) bool {
	select {
	case <-j.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended tells whether the job has.
func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// exitCode is that of a job that has ended, as a shell gives it.
func (j *job) exitCode() int {
	if status, ok := j.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return j.command.ProcessState.ExitCode()
}

// output is what the job has printed so far.
func (j *job) output() string {
	text, err := os.ReadFile(j.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// failedLine is the line of the block that failed, from 1, or 0 if bash did not say.
func (j *job) failedLine() int {
	text, err := os.ReadFile(j.state + ".line")
	if err != nil {
		return 0
	}
	line, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return line
}

// interrupt ends a job as Ctrl-C does, and kills it if it goes on.
func (j *job) interrupt() error {
	j.stopped = true
	j.signal(syscall.SIGINT)
	select {
	case <-j.done:
		j.signal(syscall.SIGKILL) // whatever it has left behind
		return nil
	case <-time.After(patience):
		j.signal(syscall.SIGKILL)
		<-j.done
		return fmt.Errorf("it went on for %v after Ctrl-C, and was killed", patience)
	}
}

// signal goes to the job's processes, which have a group of their own.
func (j *job) signal(signal syscall.Signal) {
	_ = syscall.Kill(-j.command.Process.Pid, signal) // there may be none left
}

// close ends whatever still runs, the last first.
func (s *shell) close() error {
	var errs []error
	for i := len(s.jobs) - 1; i >= 0; i-- {
		if s.jobs[i].stopped {
			continue
		}
		if err := s.jobs[i].interrupt(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
