// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/tools/internal/printable"
)

// colours are those of the lines of differences (ECMA-48).
var colours = map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m"}

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
		text, colour := printable.Quote(strings.TrimSuffix(line, "\n")), colours[line[0]]
		if p.colours && colour != "" {
			text = colour + text + "\x1b[0m"
		}
		p.print(indent + text + "\n")
	}
}

// PrintStructured prints a value as JSON or YAML.
func PrintStructured(out io.Writer, format string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	// The library for YAML refuses control characters, which the one for JSON leaves.
	data = append(printable.EscapeJSON(data), '\n')
	if format == FormatYAML {
		text, err := yaml.JSONToYAML(data)
		if err != nil {
			return err
		}
		// YAML leaves some characters as they are that are not safe to print, such as those
		// that reverse text. JSON need not, and is YAML, too.
		if !bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			data = text
		}
	}
	_, err = out.Write(data)
	return err
}

// quoted quotes the strings of a value, so that each takes one line.
func quoted(value any) any {
	switch value := value.(type) {
	case string:
		return printable.Quote(value)
	case map[string]any:
		for name, field := range value {
			value[name] = quoted(field)
		}
	case []any:
		for i, element := range value {
			value[i] = quoted(element)
		}
	}
	return value
}

// FieldsOf returns a child's fields, with apiVersion and kind, and without those that are
// null or that only API servers read. No child has none.
func FieldsOf(child plan.Object) (map[string]any, error) {
	if child == nil {
		return nil, nil //nolint:nilnil // as nothing is printed of it
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil, err
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(child)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = gvks[0].ToAPIVersionAndKind()
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	dropNull(fields)
	return fields, nil
}

// dropNull drops fields that are null, such as the creationTimestamp of a template.
func dropNull(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			dropNull(value)
		}
	}
}
