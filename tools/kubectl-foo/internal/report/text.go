// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/preview"
)

// marks are what the lines of writes begin with.
var marks = map[preview.Verb]string{
	preview.Create: "+", preview.Update: "~", preview.Adopt: ">", preview.Delete: "-", preview.Leave: "!", preview.Wait: ".", preview.Suspend: ".",
}

func printText(out *Printer, plans []*Plan) error {
	for _, plan := range plans {
		if plan.IsSilent() {
			continue
		}
		out.Printf("Foo %s/%s\n", plan.Foo.Namespace, plan.Foo.Name)
		if err := PrintSteps(out, plan); err != nil {
			return err
		}
	}
	out.Printf("%s\n", summary(plans))
	return out.err
}

// PrintSteps prints the writes of a plan, and the status.
func PrintSteps(out *Printer, plan *Plan) error {
	for i, write := range plan.Writes {
		note := ""
		if write.Drift != "" && write.Verb != preview.Create {
			note = ": " + write.Drift
		}
		out.Printf("  %s %s %s %s%s\n", marks[write.Verb], write.Verb, write.Kind, write.Name, note)
		diff, err := Diff(write)
		if err != nil {
			return err
		}
		out.printDiff("      ", diff)
		printAnswer(out, plan.answer(i))
	}
	before, after := Ready(plan.Foo.Status), Ready(plan.Status)
	later := ""
	if plan.StatusMayWait() {
		later = " (within seconds)"
	}
	switch {
	case before != after:
		out.Printf("  status: %s%s\n", after, later)
		if before != "" {
			out.Printf("     was: %s\n", before)
		}
	case plan.ChangesStatus():
		out.Printf("  status: %s (other fields change)%s\n", after, later)
	}
	printAnswer(out, plan.StatusAnswer)
	return out.err
}

func printAnswer(out *Printer, answer Answer) {
	if answer.Refused != "" {
		out.Printf("      the API server would refuse this: %s\n", answer.Refused)
	}
	if answer.Differs != "" {
		out.Printf("      the API server would store something else: %s\n", answer.Differs)
	}
}

// Ready returns the condition Ready in words, or "".
func Ready(status samplev1alpha1.FooStatus) string {
	condition := meta.FindStatusCondition(status.Conditions, samplev1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return ""
	case condition.Status == metav1.ConditionTrue:
		return "ready: " + condition.Message
	}
	return fmt.Sprintf("not ready, %s: %s", condition.Reason, condition.Message)
}

func printDiffs(out *Printer, plans []*Plan) error {
	for _, plan := range plans {
		for _, write := range plan.Writes {
			diff, err := Diff(write)
			if err != nil {
				return err
			}
			out.printDiff("", diff)
		}
	}
	return out.err
}

// Diff returns the difference that a write makes to an object without its status, in the
// unified format. All lines of a new object are new; a deletion has none.
func Diff(write preview.Write) (string, error) {
	if write.After == nil {
		return "", nil
	}
	var before string
	if write.Before != nil {
		var err error
		if before, err = desired(write.Before); err != nil {
			return "", err
		}
	}
	after, err := desired(write.After)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("/%s/%s/%s", write.Kind, write.After.GetNamespace(), write.Name)
	return udiff.Unified("live"+name, "planned"+name, before, after), nil
}

// StatusDiff returns the difference between two statuses, in the unified format.
func StatusDiff(before, after samplev1alpha1.FooStatus) (string, error) {
	old, err := marshal(before)
	if err != nil {
		return "", err
	}
	planned, err := marshal(after)
	return udiff.Unified("live/status", "planned/status", string(old), string(planned)), err
}

// desired returns an object as YAML without its status. In a difference, the second line of
// a text could pass for a line of ours.
func desired(object preview.Object) (string, error) {
	fields, err := FieldsOf(object)
	if err != nil {
		return "", err
	}
	delete(fields, "status")
	text, err := yaml.Marshal(quoted(fields))
	return string(text), err
}

// summary returns the last line.
func summary(plans []*Plan) string {
	counts := map[preview.Verb]int{}
	silent, statuses, refused := 0, 0, 0
	for _, plan := range plans {
		if plan.IsSilent() {
			silent++
		}
		if plan.ChangesStatus() {
			statuses++
		}
		if plan.StatusAnswer.Refused != "" {
			refused++
		}
		for i, write := range plan.Writes {
			counts[write.Verb]++
			if plan.answer(i).Refused != "" {
				refused++
			}
		}
	}
	if silent == len(plans) {
		return fmt.Sprintf("Nothing to do: %s.", ofFoos(len(plans), "%d Foo is as asked", "%d Foos are as asked"))
	}
	text := fmt.Sprintf("+%d ~%d -%d", counts[preview.Create], counts[preview.Update]+counts[preview.Adopt], counts[preview.Delete])
	if left := counts[preview.Leave]; left > 0 {
		text += fmt.Sprintf(" !%d", left)
	}
	text += ", " + ofFoos(statuses, "%d status", "%d statuses")
	if refused > 0 {
		text += fmt.Sprintf(", %d refused", refused)
	}
	return text + " of " + ofFoos(len(plans), "%d Foo", "%d Foos")
}

func ofFoos(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf(one, n)
	}
	return fmt.Sprintf(many, n)
}
