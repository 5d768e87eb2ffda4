// SPDX-License-Identifier: Apache-2.0

// Tests of Log.

package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	created = `{"stage":"ResponseComplete","requestURI":"/a","verb":"create","user":{"username":"a"},"objectRef":{"resource":"configmaps","namespace":"n","name":"d"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.000100Z","stageTimestamp":"2026-01-02T03:04:05.001200Z"}` + "\n"
	refused = `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","user":{"username":"b"},"objectRef":{"resource":"foos","subresource":"status"},` +
		`"responseStatus":{"code":409},"stageTimestamp":"2026-01-02T03:04:05Z"}` + "\n"
	begun = `{"stage":"ResponseStarted","requestURI":"/a","verb":"create","objectRef":{"resource":"configmaps"}}` + "\n"
)

func TestLogFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendTo := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	next := func(log *Log) []Write {
		t.Helper()
		writes, err := log.Next()
		if err != nil {
			t.Fatal(err)
		}
		return writes
	}
	appendTo(refused)
	log, err := OpenAtEnd(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := next(log); len(got) != 0 {
		t.Errorf("after opening at the end: %v, want nothing", got)
	}

	half := len(created) / 2
	appendTo(begun + refused + created[:half])
	got := next(log)
	if len(got) != 1 || got[0].Path() != "foos/status" || got[0].OK() || got[0].User != "b" {
		t.Errorf("got %+v, want only the refused update of a status: the first line is of a request that has no response yet, the last is incomplete", got)
	}

	appendTo(created[half:])
	got = next(log)
	if len(got) != 1 || !got[0].OK() || got[0].Done.Sub(got[0].Received) != 1100*time.Microsecond || got[0].Name != "d" {
		t.Errorf("got %+v, want the creation of n/d, which took 1.1 ms", got)
	}

	appendTo(refused)
	for _, name := range []string{"audit-2026-01-01.log", "audit-2026-01-02.log"} {
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Fatal(err)
		}
		appendTo(created)
	}
	if got := next(log); len(got) != 3 || got[0].OK() || !got[1].OK() || !got[2].OK() {
		t.Errorf("after two rotations: %+v, want one write of each file", got)
	}
	if got := next(log); len(got) != 0 {
		t.Errorf("again: %+v, want nothing", got)
	}
}
