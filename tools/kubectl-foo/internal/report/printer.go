// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"example.com/sample-controller/tools/internal/printable"
)

// The colours of the lines of differences (ECMA-48).
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	reset = "\x1b[0m"
)

// Printer prints, in colours on a terminal. It remembers the first error, and prints
// nothing after it.
type Printer struct {
	out     io.Writer
	colours bool
	err     error
}

// NewPrinter returns a Printer. There are no colours if the environment variable NO_COLOR
// is set (no-color.org).
func NewPrinter(out io.Writer) *Printer {
	file, isFile := out.(*os.File)
	return &Printer{out: out, colours: isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Err returns the first error.
func (p *Printer) Err() error { return p.err }

// Printf prints a text. Much of what its arguments say was written by others, who must be
// able neither to control the terminal nor to begin a line. So it quotes their characters
// that can't be printed, and a Printer has no other way to print.
func (p *Printer) Printf(format string, args ...any) {
	for i, arg := range args {
		if _, isNumber := arg.(int); !isNumber {
			args[i] = printable.Quote(fmt.Sprint(arg))
		}
	}
	p.print(fmt.Sprintf(format, args...))
}

func (p *Printer) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, text)
	}
}

// printDiff prints a difference with its lines indented.
func (p *Printer) printDiff(indent, diff string) {
	for line := range strings.Lines(diff) {
		text, colour := printable.Quote(strings.TrimSuffix(line, "\n")), map[byte]string{'+': green, '-': red}[line[0]]
		if p.colours && colour != "" {
			text = colour + text + reset
		}
		p.print(indent + text + "\n")
	}
}
