// SPDX-License-Identifier: Apache-2.0

// Tests of the processes, the logs and the waiting.

package testcluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestProgramErrContainsTheEndOfTheLog(t *testing.T) {
	command := exec.Command("/bin/sh", "-c", "seq 99; echo one; echo two >&2; exit 3")
	p, err := StartProgram("thing", filepath.Join(t.TempDir(), "log"), command)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	begins, ends := "thing ended by itself (exit status 3); the end of its log:\n  82\n", "\n  one\n  two"
	if message := p.Err().Error(); !strings.HasPrefix(message, begins) || !strings.HasSuffix(message, ends) {
		t.Errorf("got %q", message)
	}
}

func TestStopKillsOnlyAProgramThatIgnoresSIGTERM(t *testing.T) {
	for _, row := range []struct {
		script string
		grace  time.Duration
		want   string
	}{
		{"echo ready; exec sleep 60", time.Minute, "signal: terminated"},
		{"trap '' TERM; echo ready; exec sleep 60", time.Millisecond, "signal: killed"},
	} {
		log := &Log{}
		command := exec.Command("/bin/sh", "-c", row.script)
		command.Stdout = log
		p, err := StartProcess(command)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Await(t.Context(), p, "ready", 1); err != nil {
			t.Fatal(err)
		}
		if p.Stop(row.grace); p.State().String() != row.want {
			t.Errorf("%s ended with %v, want %s", row.script, p.State(), row.want)
		}
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

func TestAwaitReturnsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Await(t.Context(), time.Second, "it is there", func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.New("it is not there")
		})
		if want := "waiting at most 1s until it is there: context deadline exceeded: it is not there"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// TestFewClustersStartAtATime starts more than there are cores, of a program that takes a moment.
func TestFewClustersStartAtATime(t *testing.T) {
	folder := t.TempDir()
	program, starts := filepath.Join(folder, "devcluster"), filepath.Join(folder, "starts")
	script := "#!/bin/sh\nprintf + >>" + starts + "; sleep 0.1; printf - >>" + starts + "; while [ $1 != -- ]; do shift; done; shift; exec \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for range runtime.NumCPU() + 3 {
		group.Go(func() error {
			c, err := StartCluster(t.Context(), program, folder)
			if err != nil {
				return err
			}
			return c.Stop()
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	for now, most := 0, runtime.NumCPU(); len(written) > 0; written = written[1:] {
		if now += map[byte]int{'+': 1, '-': -1}[written[0]]; now > most {
			t.Errorf("%d clusters were starting at the same time, on %d cores", now, most)
		}
	}
}
