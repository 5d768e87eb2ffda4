// SPDX-License-Identifier: Apache-2.0

// Where the steps of a document run: a copy of the tree with its environment, and shell sessions
// that last for the whole document.

package docs

import (
	"bytes"
	"context"
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

// patience is how long to wait before sending Ctrl-C a second time, because bash loses a Ctrl-C
// that arrives while it starts a program, and then before killing the program.
const patience = 15 * time.Second

// prelude joins many blocks into one session. Each block begins with the directory, variables and
// functions that the previous one saved in the file $0. $1 is the block. A failing command ends
// the block, and writes its line to $0.line. BASH_ARGV0 is not saved: reading it would set $0,
// and a background block would then overwrite another session.
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
	scratch string   // directory of the session's files
	start   string   // the directory in which each terminal begins
	env     []string // of each command
	jobs    []*job   // all that were started
	// leader keeps the process group of all foreground blocks alive, so that no other group gets
	// its ID. Processes that a block left behind can thus be killed long after the block ended.
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
	// cat ends with this process at the latest, because its standard input is then closed.
	if _, err := s.leader.StdinPipe(); err != nil {
		return nil, err
	}
	return s, s.leader.Start()
}

// stateOf returns the file that holds a terminal's session.
func (s *shell) stateOf(terminal string) string {
	return filepath.Join(s.scratch, "terminal-"+terminal)
}

// begin starts a block in a terminal. A background block gets a copy of the session, and its own
// process group.
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

// signal sends a signal to the job's process group. It is no error if no process is left.
func (j *job) signal(signal syscall.Signal) { _ = syscall.Kill(-j.group, signal) }

// close ends all running jobs, the last one first, and the processes that other jobs left behind.
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

// sandbox contains a copy of the tree and a home directory. A document runs in it, and
// shares only Go's caches with the caller.
type sandbox struct {
	scratch string
	copy    string
	home    string
	env     []string
}

// built lists the programs that are copied with the tree. The documents' make targets rebuild
// programs that are out of date.
var built = []string{"devcluster", "sample-controller", "kubectl-foo"}

// newSandbox makes a sandbox from the tree in root.
func newSandbox(ctx context.Context, root string) (*sandbox, error) {
	scratch, err := os.MkdirTemp("", "docs-")
	if err != nil {
		return nil, err
	}
	box := &sandbox{
		scratch: scratch,
		copy:    filepath.Join(scratch, "sample-controller"),
		home:    filepath.Join(scratch, "home"),
	}
	if err := box.fill(ctx, root); err != nil {
		return nil, errors.Join(err, box.remove())
	}
	return box, nil
}

func (box *sandbox) fill(ctx context.Context, root string) error {
	for _, dir := range []string{box.home, box.in("tmp"), box.in("path"), box.in("run")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if _, err := output(ctx, root, "bash", "-ec", cloneTree, "bash", box.copy); err != nil {
		return err
	}
	for _, name := range built {
		program := filepath.Join(root, "bin", name)
		if _, err := os.Stat(program); err != nil {
			continue
		}
		if _, err := output(ctx, root, "cp", "-p", program, filepath.Join(box.copy, "bin", name)); err != nil {
			return err
		}
	}
	kubectl := fmt.Sprintf("#!/usr/bin/env bash\nexec %q kubectl \"$@\"\n", filepath.Join(box.copy, "bin", "devcluster"))
	if err := os.WriteFile(box.in("path", "kubectl"), []byte(kubectl), 0o700); err != nil {
		return err
	}
	// Otherwise, the go command leaves a process that writes to this directory after the sandbox
	// was removed.
	telemetry := box.in("home", ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600); err != nil {
		return err
	}
	env, err := box.environment(ctx, root)
	box.env = env
	return err
}

// in returns a path in the scratch directory.
func (box *sandbox) in(parts ...string) string {
	return filepath.Join(append([]string{box.scratch}, parts...)...)
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

// kept lists the caller's variables that the network and the go command need. A document's commands
// get them, too.
var kept = []string{
	"USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "CC", "CGO_ENABLED", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

func (box *sandbox) environment(ctx context.Context, root string) ([]string, error) {
	env := []string{"HOME=" + box.home, "TMPDIR=" + box.in("tmp"), "TERM=dumb",
		"PATH=" + box.in("path") + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(kept, name) || strings.HasPrefix(name, "GO") && name != "GO_TEST_FLAGS" {
			env = append(env, variable)
		}
	}
	// Their defaults depend on HOME, which differs.
	names := []string{"GOENV", "GOPATH", "GOCACHE", "GOMODCACHE"}
	values, err := output(ctx, root, "go", append([]string{"env"}, names...)...)
	if err != nil {
		return nil, err
	}
	for i, value := range strings.Split(strings.TrimSuffix(values, "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env, nil
}

// cloneTree clones the repository in the working directory to $1, and commits uncommitted changes
// there, because documents contain commands that refuse them.
const cloneTree = `
git clone --quiet --no-hardlinks --no-checkout . "$1" ||
	{ echo "the documents run in a clone of the tree, so it must be a git repository of yours with a commit" >&2; exit 1; }
clone=(git --git-dir="$1/.git" --work-tree=.)
"${clone[@]}" read-tree HEAD
"${clone[@]}" add --all
cd "$1"
git diff --cached --quiet ||
	git -c user.name=docs -c user.email=docs@localhost commit --quiet --message="Uncommitted changes"
git reset --quiet --hard
mkdir -p bin`

// output runs a program, and returns what it prints to standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
