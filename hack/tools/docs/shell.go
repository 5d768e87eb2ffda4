// SPDX-License-Identifier: Apache-2.0

// The shell that runs the blocks of a document.

package docs

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long to wait before sending Ctrl-C a second time, because bash loses a Ctrl-C
// that arrives while it starts a program, and then before killing the program.
const patience = 15 * time.Second

// prelude makes a failing command end its block, as errexit would, but not the shell: bash then
// returns from the block, a sourced file. The last line that is set is the block's, not that of a
// function. The trap is one line because bash counts its lines, too.
const prelude = `
set -o pipefail -o errtrace
trap 'docs_code=$?; if [[ -n ${BASH_SOURCE-} ]]; then docs_line=$LINENO; ((BASH_SUBSHELL == 0)) || exit "$docs_code"; return "$docs_code"; fi' ERR
`

// shell is the one bash that runs all blocks of a document. It is used by one goroutine.
type shell struct {
	dir     string // of the blocks and their outputs
	command *exec.Cmd
	input   io.Writer
	replies chan string
	ended   chan struct{}
	blocks  int
	jobs    []*job // in the background
}

// job is a block that was started.
type job struct {
	group   int    // ID of its process group
	log     string // file of its output
	code    int    // its exit code, unless it is in the background
	line    int    // the number of its line that failed, counted from 1, or 0
	stopped bool
}

// newShell starts a shell in the directory start. The caller must close it.
func newShell(dir, start string, env []string) (*shell, error) {
	s := &shell{dir: dir, command: exec.Command("bash", "--noprofile", "--norc"), replies: make(chan string, 1), ended: make(chan struct{})}
	s.command.Dir, s.command.Env = start, env
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			s.replies <- lines.Text()
		}
	}()
	go func() {
		defer close(s.ended)
		_ = s.command.Wait() // a block that ended the shell has an error already
	}()
	s.input = input
	return s, s.send(prelude)
}

// send makes the shell run commands.
func (s *shell) send(commands string) error {
	_, err := fmt.Fprintln(s.input, commands)
	return err
}

// quote quotes a word for bash.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// start runs a block to its end, or until the context ends; close then ends it. If it is for the background,
// start does not wait for it. It then has a process group of its own, to which it sends a SIGKILL when it ends.
func (s *shell) start(ctx context.Context, text string, background bool) (*job, error) {
	s.blocks++
	script := filepath.Join(s.dir, strconv.Itoa(s.blocks))
	j := &job{group: s.command.Process.Pid, log: script + ".log"}
	source := fmt.Sprintf("source %s </dev/null >%s 2>&1", quote(script), quote(j.log))
	commands := "docs_line=0\n" + source + "\necho \"$? $docs_line\""
	if background {
		commands = "set -m\n{ trap : INT; (" + source + "); kill -KILL 0; } &\nset +m\necho $!"
	}
	err := errors.Join(os.WriteFile(script, []byte(text), 0o600), os.WriteFile(j.log, nil, 0o600), s.send(commands))
	if err != nil {
		return j, err
	}
	select {
	case reply := <-s.replies:
		if background {
			s.jobs = append(s.jobs, j)
			_, err = fmt.Sscan(reply, &j.group)
		} else {
			_, err = fmt.Sscan(reply, &j.code, &j.line)
		}
		return j, err
	case <-s.ended:
		return j, fmt.Errorf("it ended the shell, with exit code %d", s.command.ProcessState.ExitCode())
	case <-ctx.Done():
		return j, ctx.Err()
	}
}

// ended reports whether a job in the background has ended.
func (j *job) ended() bool { return syscall.Kill(j.group, 0) != nil }

// output returns what the job has printed so far.
func (j *job) output() string {
	text, err := os.ReadFile(j.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// interrupt sends Ctrl-C to a job in the background, and kills the job if it does not end.
func (j *job) interrupt() error {
	j.stopped = true
	for range 2 {
		j.signal(syscall.SIGINT)
		for range patience / lookEvery {
			if j.ended() {
				return nil
			}
			<-time.After(lookEvery)
		}
	}
	j.signal(syscall.SIGKILL)
	return fmt.Errorf("it was still running %v after Ctrl-C, and was killed", 2*patience)
}

// signal sends a signal to the job's process group. It is no error if no process is left.
func (j *job) signal(signal syscall.Signal) { _ = syscall.Kill(-j.group, signal) }

// close ends all running jobs, the last one first, and the processes that other blocks left behind.
func (s *shell) close() error {
	var errs []error
	for _, j := range slices.Backward(s.jobs) {
		if !j.ended() {
			errs = append(errs, j.interrupt())
		}
	}
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) // no process may be left
	<-s.ended
	return errors.Join(errs...)
}

// sandbox contains a copy of the tree and a home directory. A document runs in it, and
// shares only Go's caches with the caller.
type sandbox struct {
	scratch string
	copy    string
	home    string
	env     []string
}

// newSandbox makes a sandbox from the tree in root.
func newSandbox(ctx context.Context, root string) (*sandbox, error) {
	scratch, err := os.MkdirTemp("", "docs-")
	if err != nil {
		return nil, err
	}
	box := &sandbox{scratch: scratch, copy: filepath.Join(scratch, "sample-controller"), home: filepath.Join(scratch, "home")}
	settings, err := output(ctx, root, "bash", "-c", fillSandbox, "sandbox.sh", scratch)
	if err != nil {
		return nil, errors.Join(err, box.remove())
	}
	path := filepath.Join(scratch, "path") + string(os.PathListSeparator) + os.Getenv("PATH")
	box.env = append(strings.Split(strings.TrimSpace(settings), "\n"),
		"HOME="+box.home, "TMPDIR="+filepath.Join(scratch, "tmp"), "TERM=dumb", "PATH="+path)
	return box, nil
}

// remove removes the sandbox. It retries, because a killed process may still write for a
// moment.
func (box *sandbox) remove() (err error) {
	for range 20 {
		if err = os.RemoveAll(box.scratch); err == nil {
			break
		}
		<-time.After(lookEvery)
	}
	return err
}

//go:embed sandbox.sh
var fillSandbox string

// output runs a program, and returns what it prints to standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, stderr.String())
	}
	return stdout.String(), nil
}
