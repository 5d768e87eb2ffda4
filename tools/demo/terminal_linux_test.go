// SPDX-License-Identifier: Apache-2.0

// Tests of the terminal.

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

func TestStyleOfATerminal(t *testing.T) {
	terminal := newTerminal(t)
	for name, test := range map[string]struct {
		columns     int
		environment map[string]string
		want        style
	}{
		"97 columns":          {97, map[string]string{"TERM": "xterm"}, style{columns: 97, colour: true}},
		"a size not known":    {0, map[string]string{"TERM": "xterm"}, style{columns: wide, colour: true}},
		"no colours wanted":   {80, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, style{columns: 80}},
		"no colours possible": {80, map[string]string{"TERM": "dumb"}, style{columns: 80}},
	} {
		resize := exec.CommandContext(t.Context(), "stty", "rows", "24", "cols", fmt.Sprint(test.columns))
		resize.Stdin = terminal
		if out, err := resize.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := styleOf(terminal, func(name string) string { return test.environment[name] }); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestStyleOfWhatIsNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	for _, file := range []*os.File{file, null, out} {
		if got := styleOf(file, func(string) string { return "xterm" }); got != (style{}) {
			t.Errorf("%s: got %+v", file.Name(), got)
		}
	}
}

// newTerminal is a terminal that nobody looks at, open for writing only, as standard
// output may be.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	go func() { _, _ = io.Copy(io.Discard, screen) }()
	var number, locked uint32
	for request, argument := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(argument))); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}
