// SPDX-License-Identifier: Apache-2.0

// Shell sessions that span all blocks of a document, and the directives in comments.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the time after which Ctrl-C is sent a second time, because bash loses a
// Ctrl-C that arrives while it starts a program. lastPatience is the time from then on
// until the program is killed.
const (
	patience     = 15 * time.Second
	lastPatience = 15 * time.Second
)

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
	leader  *leader  // of the process group of all blocks that are not in the background
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

// leader is a process that only keeps a process group alive, so that no other group gets
// its ID. Processes that a block left behind can thus be killed long after the block has
// ended.
type leader struct {
	command *exec.Cmd
	stdin   io.Closer
}

func startLeader() (*leader, error) {
	l := &leader{command: exec.Command("cat")}
	l.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := l.command.StdinPipe() // cat ends with this process, because the pipe is closed then
	if err != nil {
		return nil, err
	}
	l.stdin = stdin
	return l, l.command.Start()
}

// end kills the process group.
func (l *leader) end() {
	_ = syscall.Kill(-l.command.Process.Pid, syscall.SIGKILL)
	_ = l.stdin.Close()
	_ = l.command.Wait()
}

// stateOf returns the file that holds a terminal's session.
func (s *shell) stateOf(terminal string) string {
	return filepath.Join(s.scratch, "terminal-"+terminal)
}

// begin starts a block in a terminal. A background block gets a copy of the session.
func (s *shell) begin(terminal, script string, background bool) (*job, error) {
	name := filepath.Join(s.scratch, strconv.Itoa(len(s.jobs)))
	j := &job{log: name + ".log", state: s.stateOf(terminal), done: make(chan struct{})}
	if err := os.Remove(j.state + ".line"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
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
	if err := s.launch(j, background); err != nil {
		return nil, fmt.Errorf("bash: %w", err)
	}
	return j, nil
}

// launch starts a job. A background job gets its own process group; all others share one.
func (s *shell) launch(j *job, background bool) error {
	group := 0
	if !background {
		if s.leader == nil {
			l, err := startLeader()
			if err != nil {
				return err
			}
			s.leader = l
		}
		group = s.leader.command.Process.Pid
	}
	j.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := j.command.Start(); err != nil {
		return err
	}
	s.jobs = append(s.jobs, j)
	if j.group = group; background {
		j.group = j.command.Process.Pid
	}
	go func() {
		defer close(j.done)
		_ = j.command.Wait() // its ProcessState holds the result
		if background {
			j.signal(syscall.SIGKILL) // kills processes that it left behind
		}
	}()
	return nil
}

// export sets a variable in all existing and future terminals.
func (s *shell) export(name, value string) error {
	s.env = append(s.env, name+"="+value)
	states, err := filepath.Glob(s.stateOf("*"))
	for _, state := range states {
		file, openErr := os.OpenFile(state, os.O_APPEND|os.O_WRONLY, 0)
		if openErr != nil {
			return openErr
		}
		_, writeErr := fmt.Fprintf(file, "export %s=%q\n", name, value)
		err = errors.Join(err, writeErr, file.Close())
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
	line, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return line
}

// interrupt sends Ctrl-C to a job, and kills the job if it does not end.
func (j *job) interrupt() error {
	j.stopped = true
	for _, wait := range []time.Duration{patience, lastPatience} {
		j.signal(syscall.SIGINT)
		select {
		case <-j.done:
			return nil
		case <-time.After(wait):
		}
	}
	j.signal(syscall.SIGKILL)
	<-j.done
	return fmt.Errorf("it was still running %v after Ctrl-C, and was killed", patience+lastPatience)
}

// signal sends a signal to the job's process group. It ignores the error if no process is
// left.
func (j *job) signal(signal syscall.Signal) { _ = syscall.Kill(-j.group, signal) }

// close ends all jobs that still run, the last first.
func (s *shell) close() error {
	var errs []error
	for _, j := range slices.Backward(s.jobs) {
		if j.ended() {
			continue
		}
		if err := j.interrupt(); err != nil {
			errs = append(errs, err)
		}
	}
	if s.leader != nil {
		s.leader.end()
	}
	return errors.Join(errs...)
}

// defaultTimeout limits a block without the option timeout.
const defaultTimeout = 2 * time.Minute

// runOptions say how to run a block.
type runOptions struct {
	terminal   string // which shell session; the first is called 1
	background bool
	until      string // for a background block: the text in its output that shows that it is up
	id         string
	fails      bool // whether it must fail
	timeout    time.Duration
	skip       string // why it is not run
	before     beforeOptions
}

// beforeOptions say what to do before a block, or where a comment stands alone.
type beforeOptions struct {
	interrupt bool
	victim    string // id of the background block to interrupt, if it is not the last one
	cluster   bool
}

// printOptions say how to compare what a block printed.
type printOptions struct {
	of       string // id of the block, if it is not the last one
	anyOrder bool
	within   time.Duration
}

// option is KEY, KEY=VALUE or KEY="VALUE".
type option struct{ key, value string }

var optionPattern = regexp.MustCompile(`^([a-z]+)(?:=(?:"([^"]*)"|([^"\s]\S*)))?(?:\s+|$)`)

// The first words of directives.
const (
	wordRun    = "run"
	wordPrints = "prints"
	wordFile   = "file"
	wordPatch  = "patch"
	wordHidden = "hidden"
)

// splitComment returns the first word of a comment, and the rest.
func splitComment(comment string) (word, rest string) {
	comment = strings.TrimSpace(comment)
	end := strings.IndexFunc(comment, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return comment, ""
	}
	return comment[:end], strings.TrimPrefix(comment[end:], ":")
}

func parseOptions(s string) ([]option, error) {
	var options []option
	for s = strings.TrimSpace(s); s != ""; {
		match := optionPattern.FindStringSubmatch(s)
		if match == nil {
			return nil, fmt.Errorf("%q is not an option: want KEY, KEY=VALUE or KEY=\"VALUE\"", s)
		}
		options = append(options, option{match[1], match[2] + match[3]})
		s = s[len(match[0]):]
	}
	return options, nil
}

// applyRun applies an option of a run comment.
func applyRun(o option, run *runOptions, prints *printOptions) error {
	var err error
	switch o.key {
	case "terminal":
		run.terminal = o.value
	case "background":
		run.background = true
	case "until":
		run.until = o.value
	case "id":
		run.id = o.value
	case "fails":
		run.fails = true
	case "timeout":
		run.timeout, err = time.ParseDuration(o.value)
	case "skip":
		if run.skip = o.value; run.skip == "" {
			err = errors.New("say why: skip=\"reason\"")
		}
	case "cluster":
		run.before.cluster = true
	case "interrupt":
		run.before.interrupt, run.before.victim = true, o.value
	default:
		return applyPrints(o, prints)
	}
	return err
}

// applyPrints applies an option of a prints comment.
func applyPrints(o option, prints *printOptions) error {
	var err error
	switch o.key {
	case "of":
		prints.of = o.value
	case "unordered":
		prints.anyOrder = true
	case "within":
		prints.within, err = time.ParseDuration(o.value)
	default:
		err = fmt.Errorf("unknown option %s", o.key)
	}
	return err
}

// check returns an error for options that contradict one another.
func (run runOptions) check() error {
	switch {
	case run.until != "" && !run.background:
		return errors.New("until= is for background blocks")
	case run.background && run.fails:
		return errors.New("a background block has no exit code to check")
	}
	return nil
}
