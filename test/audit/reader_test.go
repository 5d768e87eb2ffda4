// SPDX-License-Identifier: Apache-2.0

// Tests of Read.

package audit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	foo, status := createFooLine, updateStatusLine
	read := strings.ReplaceAll(foo, `"create"`, `"get"`)
	long := func(size int) string {
		return `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{},"stageTimestamp":"2026-11-21T11:23:15.5Z",` +
			`"requestObject":{"data":"` + strings.Repeat("x", size) + `"}}`
	}
	whole := packed(t, strings.Repeat(foo+"\n", 3))
	tests := map[string]struct {
		log    string
		want   Count
		writes int
	}{
		"nothing":                    {"", Count{}, 0},
		"empty lines":                {"\n \r\n\n", Count{}, 0},
		"two writes and a read":      {foo + "\n" + read + "\r\n" + status + "\n", Count{Lines: 3, Good: 3}, 2},
		"no newline at the end":      {foo + "\n" + status, Count{Lines: 2, Good: 2}, 2},
		"cut at the end":             {foo + "\n" + status[:99], Count{Lines: 2, Good: 1, Cut: true}, 1},
		"cut at the beginning":       {foo[99:] + "\n" + status + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"something else in between":  {foo + "\nI1121 23:15:15.380081 14258 main.go:94] Hello\n{}\n" + status + "\n", Count{Lines: 4, Good: 2, Bad: 2}, 2},
		"two lines joined":           {foo + status + "\n" + status + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"binary data":                {"\x00\xff\x1f\n\x1f", Count{Lines: 2, Bad: 1, Cut: true}, 0},
		"a line of 5 MiB":            {long(5<<20) + "\n" + foo + "\n", Count{Lines: 2, Good: 2}, 2},
		"a line that is too long":    {long(32<<20) + "\n" + foo + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"compressed":                 {packed(t, foo+"\n"+status+"\n"), Count{Lines: 2, Good: 2}, 2},
		"compressed, cut at the end": {whole[:len(whole)-8], Count{Lines: 3, Good: 3, Cut: true}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			// A pipe may return less than a read asks for.
			got, err := Read(iotest.HalfReader(strings.NewReader(test.log)), func(Write) { writes++ })
			if err != nil || got != test.want || writes != test.writes {
				t.Errorf("got %+v with %d writes, %v; want %+v with %d", got, writes, err, test.want, test.writes)
			}
		})
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), func(Write) {}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// lines is a reader that returns a line several times.
type lines struct {
	line string
	left int
	rest string
}

func (l *lines) Read(p []byte) (int, error) {
	if l.rest == "" {
		if l.left == 0 {
			return 0, io.EOF
		}
		l.left--
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func TestReadDoesNotRetainLines(t *testing.T) {
	line := strings.Replace(updateStatusLine, `"stage":`, `"requestObject":{"x":"`+strings.Repeat("x", 200<<10)+`"},"stage":`, 1) + "\n"
	writes := make([]Write, 0, 200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	count, err := Read(&lines{line: line, left: cap(writes)}, func(w Write) { writes = append(writes, w) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || count.Good != cap(writes) || len(writes) != cap(writes) {
		t.Fatalf("got %+v, %v", count, err)
	}
	if grown, whole := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(len(line)*cap(writes)); grown > whole/10 {
		t.Errorf("%d bytes are retained of a log of %d", grown, whole)
	}
	runtime.KeepAlive(writes)
}
