// SPDX-License-Identifier: Apache-2.0

// The verdict on one run.

package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/sample-controller/test/faults/proxy"
)

// Step is how one step of a run went.
type Step struct {
	Name  string
	Began time.Time
	// From is how many states the history had when the step began.
	From int
	// End is what existed when the step ended: when it was as wanted and quiet, or too late.
	End End
	// Quiet is true if nothing was written for a while before the end.
	Quiet bool
	// Generations are those of the objects by UID that conform applied in this step.
	Generations map[string]int64
}

// Window is a time in which nothing may be written, and why.
type Window struct {
	From, To time.Time
	Why      string
}

// Exit is an end of the process.
type Exit struct {
	At  time.Time
	How string
}

// Run is what was recorded of one run.
type Run struct {
	Case Case
	// Calls are the requests of all replicas, in order.
	Calls   []*proxy.Call
	Steps   []Step
	History []State
	// Silent are the times in which nothing may be written.
	Silent []Window
	// Exits are the ends of the process that nobody asked for.
	Exits []Exit
	// Reached is true if the fault occurred.
	Reached bool
	// Problem is why the run can't be judged, if it can't.
	Problem string
	Options Options
}

// Writes returns the writes of the run.
func (r *Run) Writes() []Write {
	var began []time.Time
	for _, step := range r.Steps {
		began = append(began, step.Began)
	}
	return WritesOf(r.Calls, began)
}

// Finding is a rule that a run broke.
type Finding struct{ Level, Rule, Text string }

const (
	// Mark is the label that conform adds to objects in the name of another writer.
	Mark = "conform.example.com/kept"
	// Touched is an annotation of applied objects that is not compared.
	Touched = "conform.example.com/touched"
)

// Judge returns the rules that a run broke, at most one finding for each rule.
func Judge(record *Record, run *Run) []Finding {
	var findings []Finding
	add := func(level, rule string, texts []string) {
		const most = 5
		if len(texts) > most {
			texts = append(texts[:most:most], fmt.Sprintf("and %d more", len(texts)-most))
		}
		if len(texts) > 0 {
			findings = append(findings, Finding{level, rule, strings.Join(texts, "; ")})
		}
	}
	add(run.Case.Level, "end", ends(record, run))
	add(run.Case.Level, "silence", noise(run))
	add(run.Case.Level, "lives", exits(run))
	add(Quiet, "others' writes stay", lostMarks(run.History))
	add(CacheSafe, noSurplus, surplus(record, run))
	add(CacheSafe, "deletions have a precondition", blindDeletions(run.Calls))
	add(Honest, "status", lies(record, run))
	return findings
}

// ends says in which steps the end is not that without a fault.
func ends(record *Record, run *Run) []string {
	for i, step := range run.Steps {
		if diff := record.Mask(run.Case, i).Diff(record.Ends[i], step.End); len(diff) > 0 {
			diff[0] = fmt.Sprintf("step %s: %s", step.Name, diff[0])
			return diff
		}
		if !step.Quiet {
			return []string{fmt.Sprintf("step %s: it is still writing: %s", step.Name, lastWrite(run.Calls))}
		}
	}
	return nil
}

func lastWrite(calls []*proxy.Call) string {
	last := "nothing"
	for _, call := range calls {
		if IsWork(call) {
			last = fmt.Sprintf("%s (code %d)", call.Short(), call.Code)
		}
	}
	return last
}

// noise returns the writes at times at which there must be none.
func noise(run *Run) []string {
	var texts []string
	for _, call := range run.Calls {
		for _, window := range run.Silent {
			if IsWork(call) && call.Began.After(window.From) && call.Began.Before(window.To) {
				texts = append(texts, fmt.Sprintf("%s, it wrote %s", window.Why, call.Short()))
			}
		}
	}
	return texts
}

func exits(run *Run) []string {
	var texts []string
	for _, exit := range run.Exits {
		texts = append(texts, "the process ended by itself: "+exit.How)
	}
	return texts
}

// lostMarks returns the objects from which the label of another writer disappeared.
func lostMarks(history []State) []string {
	marked, reported := map[string]bool{}, map[string]bool{}
	var texts []string
	for _, s := range history {
		_, has := s.meta().GetLabels()[Mark]
		switch uid := s.UID(); {
		case has:
			marked[uid] = true
		case marked[uid] && !reported[uid] && !s.Deleted:
			reported[uid] = true
			texts = append(texts, fmt.Sprintf("%s %s lost another writer's label", s.Resource, s.meta().GetName()))
		}
	}
	return texts
}

// blindDeletions returns the kinds of deletions that name neither a UID nor a version.
func blindDeletions(calls []*proxy.Call) []string {
	var texts []string
	seen := map[string]bool{}
	for _, call := range calls {
		if !IsWork(call) || call.Method != http.MethodDelete || seen[call.Resource] || hasPrecondition(call.Body) {
			continue
		}
		seen[call.Resource] = true
		texts = append(texts, call.Short()+" has no precondition")
	}
	return texts
}

func hasPrecondition(body []byte) bool {
	var options metav1.DeleteOptions
	if json.Unmarshal(body, &options) != nil {
		// In protobuf.
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &options); err != nil {
			return false
		}
	}
	p := options.Preconditions
	return p != nil && (p.UID != nil || p.ResourceVersion != nil)
}
