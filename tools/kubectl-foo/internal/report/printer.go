/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package report

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
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

// Write implements io.Writer.
func (p *Printer) Write(data []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.out.Write(data)
	p.err = err
	return n, err
}

// printDiff prints a difference with its lines indented.
func (p *Printer) printDiff(indent, diff string) {
	for line := range strings.Lines(diff) {
		colour := map[byte]string{'+': green, '-': red}[line[0]]
		if !p.colours || colour == "" {
			fmt.Fprint(p, indent, line)
			continue
		}
		fmt.Fprint(p, indent, colour, strings.TrimSuffix(line, "\n"), reset, "\n")
	}
}
