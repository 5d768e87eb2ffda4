// SPDX-License-Identifier: Apache-2.0

// Tests of the processes, the logs and the waiting.

package testcluster

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func startTestProgram(t *testing.T, script string) *Program {
	t.Helper()
	p, err := StartProgram("thing", filepath.Join(t.TempDir(), "log"), exec.Command("/bin/sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProgramErrContainsTheEndOfTheLog(t *testing.T) {
	p := startTestProgram(t, "echo one; echo two >&2; exit 3")
	want := "thing ended by itself (exit status 3); the end of its log:\n  one\n  two"
	if <-p.Ended(); p.Err().Error() != want {
		t.Errorf("got %q, want %q", p.Err(), want)
	}
}

func TestStopTerminatesTheProgram(t *testing.T) {
	p := startTestProgram(t, "exec sleep 60")
	if err := p.Err(); err != nil {
		t.Errorf("While it runs: %v", err)
	}
	if p.Stop(time.Minute); p.State().String() != "signal: terminated" {
		t.Errorf("it ended with %v", p.State())
	}
}

func TestStopKillsAProgramThatIgnoresSIGTERM(t *testing.T) {
	log := &Log{}
	command := exec.Command("/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 60")
	command.Stdout = log
	p, err := StartProcess(command)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Await(t.Context(), p, "ready", 1); err != nil {
		t.Fatal(err)
	}
	if p.Stop(time.Millisecond); p.State().String() != "signal: killed" {
		t.Errorf("it ended with %v", p.State())
	}
}

func TestLogAwaitFailsWhenTheProgramEnds(t *testing.T) {
	log := &Log{}
	command := exec.Command("/bin/sh", "-c", "echo once")
	command.Stdout = log
	p, err := StartProcess(command)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Await(t.Context(), p, "once", 2); err == nil {
		t.Error("The program printed the text once, and Await for two returned no error")
	}
}

func TestLastLines(t *testing.T) {
	if got := LastLines("a\nb\nc\n", 2); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %q", got)
	}
}

func TestAwaitReturnsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Await(t.Context(), time.Second, "it is there", func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.New("it is not there")
		})
		if want := "waiting until it is there: not within 1s: it is not there"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestAwaitAnswerRepeatsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := errors.New("refused")
		answers := []error{nil, nil, refusal}
		request := func(context.Context) error {
			answer := answers[0]
			answers = answers[1:]
			return answer
		}
		refused := func(err error) bool { return errors.Is(err, refusal) }
		if err := AwaitAnswer(t.Context(), time.Minute, "it is refused", request, refused); err != nil || len(answers) > 0 {
			t.Errorf("%v, and %d answers are left", err, len(answers))
		}
		always := func(context.Context) error { return nil }
		if err := AwaitAnswer(t.Context(), time.Minute, "it is refused", always, refused); err == nil || !strings.HasSuffix(err.Error(), "the request succeeds") {
			t.Errorf("got %v", err)
		}
	})
}
