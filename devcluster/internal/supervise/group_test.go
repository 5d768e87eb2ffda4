// SPDX-License-Identifier: Apache-2.0

// Tests with processes.

package supervise

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests start this test binary again as their processes. The first argument selects
// what it does.
func TestMain(m *testing.M) {
	behavior := ""
	if len(os.Args) > 1 {
		behavior = os.Args[1]
	}
	switch behavior {
	case ExecSubcommand:
		os.Exit(Exec(os.Args[2:]))
	case "wait":
		OnSupervisorExit(func() { os.Exit(1) })
		say("ready")
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		OnSupervisorExit(func() { os.Exit(1) })
		say("ready")
		select {}
	default:
		os.Exit(m.Run())
	}
}

// say prints a line for awaitReady.
func say(word string) { fmt.Printf("%s %d\n", word, os.Getpid()) }

const waitLimit = 20 * time.Second

// eventually waits until condition is true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", waitLimit, what)
		case <-ticker.C:
		}
	}
}

// awaitReady waits until a process has written "ready" and a process id to a file, and
// returns the id.
func awaitReady(t *testing.T, path string) (pid int) {
	t.Helper()
	eventually(t, path+" contains ready", func() bool {
		data, _ := os.ReadFile(path) // a missing file is not ready
		_, err := fmt.Sscanf(string(data), "ready %d\n", &pid)
		return err == nil && strings.Contains(string(data), "\n")
	})
	return pid
}

func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if os.IsNotExist(err) {
		return false
	}
	if err == nil && strings.Contains(string(state), ") Z ") {
		return false // a zombie
	}
	return syscall.Kill(pid, 0) == nil
}

func newGroup(t *testing.T) (*Group, context.Context) {
	t.Helper()
	group, ctx, err := NewGroup(t.Context())
	must(t, err)
	return group, ctx
}

func start(t *testing.T, group *Group, behavior string) (log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), behavior)
	must(t, group.Start(behavior, []string{behavior}, nil, log))
	return log
}

func TestStopEndsProcessesAndIsNoFailure(t *testing.T) {
	group, ctx := newGroup(t)
	pid := awaitReady(t, start(t, group, "wait"))
	group.Stop(t.Context(), waitLimit)
	if alive(pid) {
		t.Error("the process is still running")
	}
	if ctx.Err() != nil {
		t.Errorf("stopping counts as failure: %v", context.Cause(ctx))
	}
	if err := group.Start("wait", []string{"wait"}, nil, filepath.Join(t.TempDir(), "log")); err == nil {
		t.Error("a process can be started after Stop")
	}
}

func TestStopKillsAfterGraceOrWhenItsContextIsDone(t *testing.T) {
	atOnce, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx   context.Context
		grace time.Duration
	}{"after grace": {t.Context(), 50 * time.Millisecond}, "at once": {atOnce, time.Hour}} {
		group, _ := newGroup(t)
		pid := awaitReady(t, start(t, group, "stubborn"))
		group.Stop(test.ctx, test.grace)
		if alive(pid) {
			t.Errorf("%s: the process is still running", name)
		}
	}
}

func TestForegroundCommand(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		want    int
	}{
		{"success", []string{"true"}, 0},
		{"failure", []string{"sh", "-c", "exit 7"}, 7},
		{"the environment", []string{"sh", "-c", `test "$KUBECONFIG" = "/a b"`}, 0},
		{"ended by a signal", []string{"sh", "-c", "kill -TERM $$"}, 128 + 15},
		{"no such command", []string{"./no-such-command"}, 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			group, ctx := newGroup(t)
			defer group.Stop(t.Context(), time.Second)
			code, err := group.RunForeground(ctx, ctx, time.Second, test.command, []string{"KUBECONFIG=/a b"})
			if err != nil || code != test.want {
				t.Errorf("exit code %d, %v; want %d", code, err, test.want)
			}
		})
	}
}

// The command is stopped when it is ready. What it leaves in its process group is killed.
func TestNothingIsLeftOfTheForegroundCommand(t *testing.T) {
	const endless = `; echo "ready $$" > "$LOG"; while :; do sleep 0.01; done`
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		want   int
	}{
		"it exits after SIGTERM": {`trap 'exit 5' TERM` + endless, waitLimit, 5},
		"it ignores SIGTERM":     {`trap '' TERM` + endless, 50 * time.Millisecond, 128 + 9},
		"its background process": {`trap '' TERM; sleep 1000 & echo "ready $!" > "$LOG"`, waitLimit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			group, ctx := newGroup(t)
			defer group.Stop(t.Context(), time.Second)
			ctx, cancel := context.WithCancel(ctx)
			log := filepath.Join(t.TempDir(), "log")
			pids := make(chan int, 1)
			go func() {
				defer close(pids)
				defer cancel()
				pids <- awaitReady(t, log)
			}()
			command, env := []string{"sh", "-c", test.script}, []string{"LOG=" + log}
			code, err := group.RunForeground(ctx, t.Context(), test.grace, command, env)
			if err != nil || code != test.want {
				t.Errorf("exit code %d, %v; want %d", code, err, test.want)
			}
			pid := <-pids
			eventually(t, "the command has ended", func() bool { return !alive(pid) })
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
