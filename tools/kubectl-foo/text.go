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

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The formats of plan.
const (
	formatText = "text"
	formatDiff = "diff"
	formatJSON = "json"
	formatYAML = "yaml"
)

func checkFormat(format string) error {
	formats := []string{formatText, formatDiff, formatJSON, formatYAML}
	if !slices.Contains(formats, format) {
		return fmt.Errorf("--output=%q: must be one of %s", format, strings.Join(formats, ", "))
	}
	return nil
}

// marks are what the lines of writes begin with.
var marks = map[preview.Verb]string{
	preview.Create: "+", preview.Update: "~", preview.Adopt: ">", preview.Delete: "-", preview.Leave: "!", preview.Wait: ".",
}

func printSyncs(out io.Writer, format string, syncs []*preview.Sync) error {
	switch format {
	case formatJSON, formatYAML:
		return printReport(out, format, syncs)
	case formatDiff:
		for _, sync := range syncs {
			for _, write := range sync.Writes {
				if err := printDiff(out, "", write); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, sync := range syncs {
		if sync.IsIdle() && !slices.ContainsFunc(sync.Writes, func(write preview.Write) bool { return write.Verb == preview.Leave }) {
			continue
		}
		if err := printSync(out, sync); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, summary(syncs))
	return err
}

func printSync(out io.Writer, sync *preview.Sync) error {
	if _, err := fmt.Fprintf(out, "Foo %s/%s\n", sync.Foo.Namespace, sync.Foo.Name); err != nil {
		return err
	}
	return printSteps(out, sync)
}

// printSteps prints the writes of a sync, and the status.
func printSteps(out io.Writer, sync *preview.Sync) error {
	for _, write := range sync.Writes {
		note := ""
		if write.Drift != "" && write.Verb != preview.Create {
			note = ": " + write.Drift
		}
		fmt.Fprintf(out, "  %s %s %s %s%s\n", marks[write.Verb], write.Verb, write.Kind, write.Name, note)
		if err := printDiff(out, "      ", write); err != nil {
			return err
		}
	}
	before, after := ready(sync.Foo.Status), ready(sync.Status)
	switch {
	case before != after:
		fmt.Fprintf(out, "  status: %s\n", after)
		if before != "" {
			fmt.Fprintf(out, "     was: %s\n", before)
		}
	case sync.ChangesStatus():
		fmt.Fprintf(out, "  status: %s (other fields change)\n", after)
	}
	return nil
}

// ready returns the condition Ready in words, or "".
func ready(status samplev1alpha1.FooStatus) string {
	condition := meta.FindStatusCondition(status.Conditions, samplev1alpha1.ConditionReady)
	if condition == nil {
		return ""
	}
	if condition.Status == metav1.ConditionTrue {
		return "ready: " + condition.Message
	}
	return fmt.Sprintf("not ready, %s: %s", condition.Reason, condition.Message)
}

// printDiff prints the difference that a write makes, or a whole new object.
func printDiff(out io.Writer, indent string, write preview.Write) error {
	if !write.Verb.IsWrite() || write.Verb == preview.Delete {
		return nil
	}
	var before, after string
	var err error
	if write.Before != nil {
		if before, err = desired(write.Before); err != nil {
			return err
		}
	}
	if after, err = desired(write.After); err != nil {
		return err
	}
	name := write.Kind + "/" + write.After.GetNamespace() + "/" + write.Name
	diff := udiff.Unified("live/"+name, "planned/"+name, before, after)
	for line := range strings.Lines(diff) {
		if _, err := fmt.Fprint(out, indent, line); err != nil {
			return err
		}
	}
	return nil
}

// desired returns an object as YAML without its status.
func desired(object preview.Object) (string, error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return "", err
	}
	delete(fields, "status")
	text, err := yaml.Marshal(fields)
	return string(text), err
}

// summary returns the last line.
func summary(syncs []*preview.Sync) string {
	counts, idle := map[preview.Verb]int{}, 0
	statuses := 0
	for _, sync := range syncs {
		if sync.IsIdle() {
			idle++
		}
		if sync.ChangesStatus() {
			statuses++
		}
		for _, write := range sync.Writes {
			counts[write.Verb]++
		}
	}
	if idle == len(syncs) && counts[preview.Leave] == 0 {
		return fmt.Sprintf("Nothing to do: %d Foos are as asked.", len(syncs))
	}
	text := fmt.Sprintf("+%d ~%d -%d", counts[preview.Create], counts[preview.Update]+counts[preview.Adopt], counts[preview.Delete])
	if left := counts[preview.Leave]; left > 0 {
		text += fmt.Sprintf(" !%d", left)
	}
	return fmt.Sprintf("%s, %d statuses, of %d Foos", text, statuses, len(syncs))
}

// reported is a sync in JSON and YAML.
type reported struct {
	Namespace string                    `json:"namespace"`
	Name      string                    `json:"name"`
	Writes    []reportedWrite           `json:"writes"`
	Status    *samplev1alpha1.FooStatus `json:"status,omitempty"`
}

type reportedWrite struct {
	Verb   preview.Verb   `json:"verb"`
	Kind   string         `json:"kind"`
	Name   string         `json:"name"`
	Drift  string         `json:"drift,omitempty"`
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}

func printReport(out io.Writer, format string, syncs []*preview.Sync) error {
	report := struct {
		Foos []reported `json:"foos"`
	}{[]reported{}}
	for _, sync := range syncs {
		r := reported{Namespace: sync.Foo.Namespace, Name: sync.Foo.Name, Writes: []reportedWrite{}}
		if sync.ChangesStatus() {
			r.Status = &sync.Status
		}
		for _, write := range sync.Writes {
			w := reportedWrite{Verb: write.Verb, Kind: write.Kind, Name: write.Name, Drift: write.Drift}
			var err error
			if write.Before != nil {
				if w.Before, err = fieldsOf(write.Before); err != nil {
					return err
				}
			}
			if write.After != nil {
				if w.After, err = fieldsOf(write.After); err != nil {
					return err
				}
			}
			r.Writes = append(r.Writes, w)
		}
		report.Foos = append(report.Foos, r)
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err == nil && format == formatYAML {
		data, err = yaml.JSONToYAML(data)
	} else {
		data = append(data, '\n')
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}
