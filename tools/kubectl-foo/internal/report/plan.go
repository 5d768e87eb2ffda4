// SPDX-License-Identifier: Apache-2.0

// Package report prints what the controller would write.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/preview"
)

// The formats of plans.
const (
	FormatText = "text"
	FormatDiff = "diff"
	FormatJSON = "json"
	FormatYAML = "yaml"
)

// CheckFormat refuses a format that is not one of the allowed.
func CheckFormat(format string, allowed ...string) error {
	if !slices.Contains(allowed, format) {
		return fmt.Errorf("--output=%q: must be one of %s", format, strings.Join(allowed, ", "))
	}
	return nil
}

// Plan is what the next sync of a Foo would write, and what the API server says of it.
type Plan struct {
	*preview.Sync
	// Answers has the API server's answer to each of the writes, if it was asked, and
	// StatusAnswer the one to the status.
	Answers      []Answer
	StatusAnswer Answer
}

// Answer is what an API server says of a write.
type Answer struct {
	// Refused is why the API server refuses the write, or "".
	Refused string `json:"refused,omitempty"`
	// Differs says in which of the Foo's fields what it would store differs from what is
	// sent, as an admission webhook may do, or "".
	Differs string `json:"differs,omitempty"`
}

// answer returns the API server's answer to a write.
func (p *Plan) answer(i int) Answer {
	if i < len(p.Answers) {
		return p.Answers[i]
	}
	return Answer{}
}

// IsSilent reports whether there is nothing to say: nothing is written, and no object of
// somebody else is in the way.
func (p *Plan) IsSilent() bool {
	return p.IsIdle() && !slices.ContainsFunc(p.Writes, func(write preview.Write) bool { return write.Verb == preview.Leave })
}

// Sync is a plan for programs.
type Sync struct {
	Namespace string                    `json:"namespace"`
	Name      string                    `json:"name"`
	Writes    []Write                   `json:"writes"`
	Status    *samplev1alpha1.FooStatus `json:"status,omitempty"`
	// StatusMayWait means that the status is written some seconds later.
	StatusMayWait bool    `json:"statusMayWait,omitempty"`
	StatusAnswer  *Answer `json:"statusAnswer,omitempty"`
}

// Write is a write of a child.
type Write struct {
	Verb   preview.Verb   `json:"verb"`
	Kind   string         `json:"kind"`
	Name   string         `json:"name"`
	Drift  string         `json:"drift,omitempty"`
	Diff   string         `json:"diff,omitempty"`
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	Answer *Answer        `json:"answer,omitempty"`
}

// Structured returns a plan for programs.
func (p *Plan) Structured() (*Sync, error) {
	s := &Sync{Namespace: p.Foo.Namespace, Name: p.Foo.Name, Writes: []Write{}}
	if p.ChangesStatus() {
		s.Status, s.StatusMayWait, s.StatusAnswer = &p.Status, p.StatusMayWait(), orNil(p.StatusAnswer)
	}
	for i, write := range p.Writes {
		diff, err := Diff(write)
		if err != nil {
			return nil, err
		}
		w := Write{Verb: write.Verb, Kind: write.Kind, Name: write.Name, Drift: write.Drift, Diff: diff, Answer: orNil(p.answer(i))}
		if w.Before, err = fieldsOrNil(write.Before); err != nil {
			return nil, err
		}
		if w.After, err = fieldsOrNil(write.After); err != nil {
			return nil, err
		}
		s.Writes = append(s.Writes, w)
	}
	return s, nil
}

func orNil(answer Answer) *Answer {
	if answer == (Answer{}) {
		return nil
	}
	return &answer
}

func fieldsOrNil(object preview.Object) (map[string]any, error) {
	if object == nil {
		return nil, nil //nolint:nilnil // no object has no fields
	}
	return FieldsOf(object)
}

// PrintPlans prints plans in a format.
func PrintPlans(out io.Writer, format string, plans []*Plan) error {
	switch format {
	case FormatJSON, FormatYAML:
		report := struct {
			Foos []*Sync `json:"foos"`
		}{[]*Sync{}}
		for _, plan := range plans {
			s, err := plan.Structured()
			if err != nil {
				return err
			}
			report.Foos = append(report.Foos, s)
		}
		return PrintStructured(out, format, report)
	case FormatDiff:
		return printDiffs(NewPrinter(out), plans)
	}
	return printText(NewPrinter(out), plans)
}

// PrintStructured prints a value as JSON or YAML.
func PrintStructured(out io.Writer, format string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	data = append(printable.EscapeJSON(data), '\n')
	if err == nil && format == FormatYAML {
		data, err = marshal(value)
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// marshal returns a value as YAML. YAML leaves some characters as they are that are not safe
// to print, such as those that reverse text. JSON need not, and is YAML, too.
func marshal(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	// The library refuses control characters, which its own encoder of JSON does not escape.
	data = printable.EscapeJSON(data)
	text, err := yaml.JSONToYAML(data)
	if bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return append(data, '\n'), err
	}
	return text, err
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

// FieldsOf returns an object's fields, with apiVersion and kind, and without those that are
// null or that only API servers read.
func FieldsOf(object preview.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		gvks, _, err = fooscheme.Scheme.ObjectKinds(object)
	}
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = gvks[0].ToAPIVersionAndKind()
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		dropNull(metadata)
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
