// SPDX-License-Identifier: Apache-2.0

// Package report prints what the controller would write.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/preview"
)

// The formats of plans.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// CheckFormat returns an error if a format is not one of the allowed.
func CheckFormat(format string, allowed ...string) error {
	if !slices.Contains(allowed, format) {
		return fmt.Errorf("--output=%q: must be one of %s", format, strings.Join(allowed, ", "))
	}
	return nil
}

// Plan is what the next sync of a Foo would write.
type Plan struct {
	Sync *preview.Sync `json:"-"`

	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Writes    []Write `json:"writes"` // in the order of Sync
	Status    any     `json:"status,omitempty"`
	// StatusMayWait means that the status is written within seconds and not at once.
	StatusMayWait bool `json:"statusMayWait,omitempty"`
}

// Write is a write of a child.
type Write struct {
	Verb   plan.Action    `json:"verb"`
	Kind   string         `json:"kind"`
	Name   string         `json:"name"`
	Drift  string         `json:"drift,omitempty"`
	Diff   string         `json:"diff,omitempty"`
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}

// NewPlan returns the plan of a sync.
func NewPlan(sync *preview.Sync) (*Plan, error) {
	p := &Plan{Sync: sync, Kind: sync.Kind.Name, Namespace: sync.Owner.GetNamespace(), Name: sync.Owner.GetName(), Writes: []Write{}}
	if sync.ChangesStatus() {
		p.Status, p.StatusMayWait = sync.After.GetStatus(), sync.StatusMayWait()
	}
	for _, write := range sync.Writes {
		before, beforeErr := fieldsOf(write.Before)
		after, afterErr := fieldsOf(write.After)
		diff, diffErr := diffOf(write, before, after)
		if err := errors.Join(beforeErr, afterErr, diffErr); err != nil {
			return nil, err
		}
		p.Writes = append(p.Writes, Write{write.Action, write.Kind, write.Name, write.Drift, diff, before, after})
	}
	return p, nil
}

// IsSilent reports whether there is nothing to print: nothing is written, and no object that
// belongs to someone else is in the way.
func (p *Plan) IsSilent() bool {
	return p.Sync.IsIdle() && !slices.ContainsFunc(p.Writes, func(write Write) bool { return write.Verb == plan.ActionLeave })
}

// PrintPlans prints plans in a format.
func PrintPlans(out io.Writer, format string, plans []*Plan) error {
	printer := NewPrinter(out)
	if format == FormatJSON {
		return PrintJSON(out, map[string]any{"foos": plans})
	}
	for _, plan := range plans {
		if !plan.IsSilent() {
			printer.Printf("%s %s/%s\n", plan.Kind, plan.Namespace, plan.Name)
			plan.PrintSteps(printer)
		}
	}
	printer.Printf("%s\n", summary(plans))
	return printer.err
}

// marks begin the lines of writes.
var marks = map[plan.Action]string{
	plan.ActionCreate: "+", plan.ActionUpdate: "~", plan.ActionAdopt: ">", plan.ActionDelete: "-", plan.ActionLeave: "!", plan.ActionWait: ".", plan.ActionSuspend: ".",
}

// PrintSteps prints the writes of a plan, and the status.
func (p *Plan) PrintSteps(out *Printer) {
	for _, write := range p.Writes {
		note := ""
		if write.Drift != "" && write.Verb != plan.ActionCreate {
			note = ": " + write.Drift
		}
		out.Printf("  %s %s %s %s%s\n", marks[write.Verb], write.Verb, write.Kind, write.Name, note)
		out.printDiff(write.Diff)
	}
	if p.Status == nil {
		return
	}
	before, after := Ready(p.Sync.Owner), Ready(p.Sync.After)
	note := ""
	if before == after {
		note = " (other fields change)"
	}
	if p.StatusMayWait {
		note += " (within seconds)"
	}
	out.Printf("  status: %s%s\n", after, note)
	if before != after && before != "" {
		out.Printf("     was: %s\n", before)
	}
}

// Ready returns the condition Ready of an owner in words, or "".
func Ready(owner plan.Owner) string {
	condition := meta.FindStatusCondition(owner.GetConditions(), samplev1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return ""
	case condition.Status == metav1.ConditionTrue:
		return "ready: " + condition.Message
	}
	return fmt.Sprintf("not ready, %s: %s", condition.Reason, condition.Message)
}

// diffOf returns a unified diff of an object, without its status, before and after a write. A
// deletion has no diff.
func diffOf(write preview.Write, before, after map[string]any) (string, error) {
	if after == nil {
		return "", nil
	}
	was, wasErr := desired(before)
	is, isErr := desired(after)
	name := fmt.Sprintf("/%s/%s/%s", write.Kind, write.After.GetNamespace(), write.Name)
	return udiff.Unified("live"+name, "planned"+name, was, is), errors.Join(wasErr, isErr)
}

// desired returns an object as YAML without its status. It quotes strings, because the second
// line of one could pass for a line of the output.
func desired(fields map[string]any) (string, error) {
	if fields == nil {
		return "", nil
	}
	fields = runtime.DeepCopyJSON(fields)
	delete(fields, "status")
	text, err := yaml.Marshal(quoted(fields))
	return string(text), err
}

// summary returns the last line.
func summary(plans []*Plan) string {
	counts := map[plan.Action]int{}
	silent, statuses := 0, 0
	for _, plan := range plans {
		if plan.IsSilent() {
			silent++
		}
		if plan.Status != nil {
			statuses++
		}
		for _, write := range plan.Writes {
			counts[write.Verb]++
		}
	}
	if silent == len(plans) {
		return fmt.Sprintf("Nothing to do: %s.", counted(len(plans), kindOf(plans)+" is in its desired state", kindOf(plans)+"s are in their desired state"))
	}
	text := fmt.Sprintf("+%d ~%d -%d", counts[plan.ActionCreate], counts[plan.ActionUpdate]+counts[plan.ActionAdopt], counts[plan.ActionDelete])
	if left := counts[plan.ActionLeave]; left > 0 {
		text += fmt.Sprintf(" !%d", left)
	}
	text += ", " + counted(statuses, "status", "statuses")
	return text + " of " + counted(len(plans), kindOf(plans), kindOf(plans)+"s")
}

// kindOf returns the owners' kind, or "object" if there are several.
func kindOf(plans []*Plan) string {
	if len(plans) == 0 || slices.ContainsFunc(plans, func(p *Plan) bool { return p.Kind != plans[0].Kind }) {
		return "object"
	}
	return plans[0].Kind
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// colors are the colors of added and removed lines in a diff (ECMA-48).
var colors = map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m"}

// Printer prints, with colors on a terminal. After the first error, it prints nothing.
type Printer struct {
	out    io.Writer
	colors bool
	err    error
}

// NewPrinter returns a Printer. The environment variable NO_COLOR turns colors off (no-color.org).
func NewPrinter(out io.Writer) *Printer {
	file, isFile := out.(*os.File)
	return &Printer{out: out, colors: isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Err returns the first error.
func (p *Printer) Err() error { return p.err }

// Printf prints a text. Others wrote much of what its arguments contain, and must be able neither
// to control the terminal nor to begin a line. It therefore quotes unprintable characters in the
// arguments, and a Printer has no other way to print.
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

// printDiff prints a diff below a write.
func (p *Printer) printDiff(diff string) {
	for line := range strings.Lines(diff) {
		text, color := printable.Quote(strings.TrimSuffix(line, "\n")), colors[line[0]]
		if p.colors && color != "" {
			text = color + text + "\x1b[0m"
		}
		p.print("      " + text + "\n")
	}
}

// PrintJSON prints a value as JSON, and escapes what is not safe to print.
func PrintJSON(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(printable.EscapeJSON(data), '\n'))
	return err
}

// quoted quotes the strings in a value, so that each takes one line.
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

// fieldsOf returns a child's fields, with apiVersion and kind, but without null fields and
// managedFields. For a nil child, it returns nil.
func fieldsOf(child plan.Object) (map[string]any, error) {
	if child == nil {
		return nil, nil //nolint:nilnil // nothing is printed
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

// dropNull drops null fields, such as a template's creationTimestamp.
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
