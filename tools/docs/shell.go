// SPDX-License-Identifier: Apache-2.0

// The shell that runs the blocks of a document.

package docs

import (
	"bufio"
	"bytes"
	"context"
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
// function. The trap is one line because bash counts its lines, too. The shell itself survives
// Ctrl-C, which is for the block.
const prelude = `
set -o pipefail -o errtrace
trap : INT
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

// export sets a variable for the blocks that follow.
func (s *shell) export(name, value string) error { return s.send("export " + name + "=" + quote(value)) }

// start starts a block with the shell's commands before and after it, and returns the first reply. A reply
// is only missing if there is an error.
func (s *shell) start(ctx context.Context, text, before, after string) (*job, string, error) {
	s.blocks++
	script := filepath.Join(s.dir, strconv.Itoa(s.blocks))
	j := &job{group: s.command.Process.Pid, log: script + ".log"}
	source := fmt.Sprintf("source %s </dev/null >%s 2>&1", quote(script), quote(j.log))
	err := errors.Join(os.WriteFile(script, []byte(text), 0o600), os.WriteFile(j.log, nil, 0o600), s.send(before+source+after))
	if err != nil {
		return j, "", err
	}
	select {
	case reply := <-s.replies:
		return j, reply, nil
	case <-s.ended:
		return j, "", fmt.Errorf("it ended the shell, with exit code %d", s.command.ProcessState.ExitCode())
	case <-ctx.Done():
		return j, "", ctx.Err()
	}
}

// run runs a block to its end, or until the context ends.
func (s *shell) run(ctx context.Context, text string) (*job, error) {
	j, reply, err := s.start(ctx, text, "docs_line=0\n", "\necho \"$? $docs_line\"")
	if err == nil {
		_, err = fmt.Sscan(reply, &j.code, &j.line)
	}
	if ctx.Err() != nil {
		j.signal(syscall.SIGINT)
		select {
		case <-s.replies:
		case <-s.ended:
		case <-time.After(patience): // close kills it
		}
	}
	return j, err
}

// background starts a block in the background, with its own process group. It ends with a SIGKILL to
// all processes of the group.
func (s *shell) background(ctx context.Context, text string) (*job, error) {
	j, reply, err := s.start(ctx, text, "set -m\n{ trap : INT; (", "); kill -KILL 0; } &\nset +m\necho $!")
	if err == nil {
		j.group, err = strconv.Atoi(reply)
		s.jobs = append(s.jobs, j)
	}
	return j, err
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
	settings, err := output(ctx, root, "bash", "-ec", fillSandbox, "bash", scratch)
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
func (box *sandbox) remove() error {
	for range 20 {
		if err := os.RemoveAll(box.scratch); err == nil {
			return nil
		}
		<-time.After(lookEvery)
	}
	return os.RemoveAll(box.scratch)
}

// fillSandbox fills the directory $1 with a clone of the repository in the working directory, which has its
// uncommitted changes as a commit, because documents contain commands that refuse them, and with
// the programs, which the documents' make targets rebuild if they are out of date. Telemetry would leave
// a process that writes to the home directory after the sandbox was removed. It prints the variables that
// the network and the go command need; the defaults of some depend on HOME, which differs.
const fillSandbox = `
copy=$1/sample-controller
mkdir -p "$1/run" "$1/tmp" "$1/path" "$1/home/.config/go/telemetry"
echo off >"$1/home/.config/go/telemetry/mode"
git clone --quiet --no-hardlinks --no-checkout . "$copy" ||
	{ echo "the documents run in a clone of the tree, so it must be a git repository of yours with a commit" >&2; exit 1; }
clone=(git --git-dir="$copy/.git" --work-tree=.)
"${clone[@]}" read-tree HEAD
"${clone[@]}" add --all
mkdir "$copy/bin"
for program in bin/devcluster bin/sample-controller bin/kubectl-foo; do
	if [[ -e $program ]]; then cp -p "$program" "$copy/bin"; fi
done
printf '#!/usr/bin/env bash\nexec %q kubectl "$@"\n' "$copy/bin/devcluster" >"$1/path/kubectl"
chmod +x "$1/path/kubectl"
for name in GOENV GOPATH GOCACHE GOMODCACHE; do echo "$name=$(go env "$name")"; done
for name in "${!GO@}" USER LOGNAME LANG LC_ALL TZ CC CGO_ENABLED SSL_CERT_{FILE,DIR} {HTTP,HTTPS,NO}_PROXY {http,https,no}_proxy; do
	case $name in GO_TEST_FLAGS | GOENV | GOPATH | GOCACHE | GOMODCACHE) continue ;; esac
	if [[ -n ${!name+set} ]]; then echo "$name=${!name}"; fi
done
cd "$copy"
git diff --cached --quiet ||
	git -c user.name=docs -c user.email=docs@localhost commit --quiet --message="Uncommitted changes"
git reset --quiet --hard`

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
