// SPDX-License-Identifier: Apache-2.0

// The plan: which faults a run is repeated with, from a record without one.

package judge

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/test/faults/proxy"
)

// The levels, in the order in which the exit status names the first that does not hold.
const (
	Definition = "definition"
	Quiet      = "quiet"
	CrashSafe  = "crash-safe"
	CacheSafe  = "cache-safe"
	OutageSafe = "outage-safe"
	Replicas   = "replicas"
	Honest     = "honest"
)

// Levels returns all levels.
func Levels() []string {
	return []string{Definition, Quiet, CrashSafe, CacheSafe, OutageSafe, Replicas, Honest}
}

// EachStep is the Step of a case whose fault lasts for the whole run.
const EachStep = -1

// Case is one run with one fault.
type Case struct {
	Level, Fault string
	// Step is the index of the step during which the fault occurs.
	Step int
	// Write is the write that meets the fault, for those of single writes.
	Write *Write
	// Resource and Verb are what the fault is about, if it is not about all requests. The
	// resource has its group, and its subresource after a slash.
	Resource, Verb string
	// Alone is true if the fault concerns the whole control plane.
	Alone bool
	// Name is unique.
	Name string
}

// Write identifies a write of the controller in each run: the how manieth of its kind it is
// in its step. Names are not part of it, because they may be generated.
type Write struct {
	Step             int
	Method, Resource string
	Nth              int
}

// String returns the write for people.
func (w *Write) String() string { return fmt.Sprintf("%s-%s-%d", w.Method, w.Resource, w.Nth) }

// PathOf returns the resource of a call with its group and subresource.
func PathOf(call *proxy.Call) string {
	return path.Join(ResourceName(call.Resource, call.APIGroup), call.Subresource)
}

// IsWork reports whether a call changes an object. Leases and Events are no work, and neither
// are questions in the form of writes.
func IsWork(call *proxy.Call) bool {
	isQuestion := strings.HasSuffix(call.Resource, "reviews") || call.Subresource == "token"
	return call.IsWrite() && call.IsResourceRequest && call.Resource != "events" && call.Resource != "leases" && !isQuestion
}

// WritesOf returns the writes among calls. began are the times at which the steps began.
func WritesOf(calls []*proxy.Call, began []time.Time) []Write {
	var writes []Write
	seen := map[Write]int{}
	for _, call := range calls {
		if !IsWork(call) {
			continue
		}
		w := Write{Step: stepAt(began, call.Began), Method: call.Method, Resource: PathOf(call)}
		seen[w]++
		w.Nth = seen[w]
		writes = append(writes, w)
	}
	return writes
}

func stepAt(began []time.Time, at time.Time) int {
	step := 0
	for i, b := range began {
		if !at.Before(b) {
			step = i
		}
	}
	return step
}

// Request is a kind of request that the controller makes.
type Request struct{ Verb, Resource string }

// Record is what runs without a fault have in common.
type Record struct {
	Steps []string
	// Ends are the ends of the steps, and Masks what differs between runs.
	Ends  []End
	Masks []Mask
	// Touched are the masks for cases that touch objects: a controller may copy annotations.
	Touched []Mask
	// Peaks are the highest of all runs, by step.
	Peaks []Peaks
	// Writes are those that each run makes, and Requests the kinds of requests.
	Writes   []Write
	Requests []Request
	// Statuses are the resources whose status the controller writes.
	Statuses []string
}

// Touching is the fault of a run without a fault in which the applied objects are touched.
const Touching = "touching"

// Mask returns what is not compared at the end of a step in a case.
func (r *Record) Mask(c Case, step int) Mask {
	if c.Fault == "stale" {
		return r.Touched[step]
	}
	return r.Masks[step]
}

// Common makes a record of runs without a fault, and of one that touches the applied objects.
func Common(runs []*Run, touching *Run) *Record {
	r := &Record{}
	for i, step := range runs[0].Steps {
		var ends []End
		for _, run := range runs {
			ends = append(ends, run.Steps[i].End)
		}
		r.Steps, r.Ends, r.Masks = append(r.Steps, step.Name), append(r.Ends, ends[0]), append(r.Masks, Varying(ends))
		r.Touched = append(r.Touched, Varying(append(ends, touching.Steps[i].End)))
	}
	r.Peaks = highest(runs)
	r.Writes = runs[0].Writes()
	for _, run := range runs[1:] {
		writes := run.Writes()
		r.Writes = slices.DeleteFunc(r.Writes, func(w Write) bool { return !slices.Contains(writes, w) })
	}
	for _, call := range runs[0].Calls {
		request := Request{call.Verb, PathOf(call)}
		if call.IsResourceRequest && !slices.Contains(r.Requests, request) {
			r.Requests = append(r.Requests, request)
		}
	}
	slices.SortFunc(r.Requests, func(a, b Request) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	r.Statuses = StatusesOf(runs[0].Calls)
	return r
}

// StatusesOf returns the resources whose status was written.
func StatusesOf(calls []*proxy.Call) []string {
	var statuses []string
	for _, call := range calls {
		resource := ResourceName(call.Resource, call.APIGroup)
		if IsWork(call) && call.Subresource == "status" && !slices.Contains(statuses, resource) {
			statuses = append(statuses, resource)
		}
	}
	return statuses
}

// mostWrites is how many writes of one kind in one step meet a fault: the first ones and the
// last.
const mostWrites = 3

// Plan returns the cases for a record. elects is true if the controller can elect a leader.
func Plan(r *Record, elects bool) []Case {
	var cases []Case
	add := func(c Case) {
		where := "run"
		if c.Step != EachStep {
			where = r.Steps[c.Step]
		}
		parts := []string{c.Level, c.Fault, where}
		if c.Write != nil {
			parts = append(parts, c.Write.String())
		}
		if c.Resource != "" {
			parts = append(parts, strings.TrimPrefix(c.Verb+"-"+c.Resource, "-"))
		}
		for i := range parts {
			parts[i] = strings.NewReplacer("/", ".", " ", "-").Replace(parts[i])
		}
		c.Name = strings.Join(parts, "/")
		cases = append(cases, c)
	}
	planQuiet(add)
	planWrites(r, add)
	planSteps(r, add)
	planWatches(r, add)
	planPlane(add)
	add(Case{Level: Replicas, Fault: "two-at-once", Step: EachStep})
	if elects {
		for _, fault := range []string{"leader-killed", "leader-frozen", "leader-robbed"} {
			add(Case{Level: Replicas, Fault: fault, Step: 0})
		}
	}
	return cases
}

func planQuiet(add func(Case)) {
	add(Case{Level: Quiet, Fault: "none", Step: EachStep})
	for _, fault := range []string{"rest", "relist", "restart"} {
		add(Case{Level: Quiet, Fault: fault, Step: 0})
	}
}

// planWrites adds the faults of single writes.
func planWrites(r *Record, add func(Case)) {
	for i, w := range r.Writes {
		last := true
		for _, later := range r.Writes[i+1:] {
			last = last && (later.Step != w.Step || later.Method != w.Method || later.Resource != w.Resource)
		}
		if w.Nth >= mostWrites && !last {
			continue
		}
		for _, fault := range []string{"kill-before", "kill-after"} {
			add(Case{Level: CrashSafe, Fault: fault, Step: w.Step, Write: &w})
		}
		for _, fault := range []string{"lost-answer", "late", "401", "403", "409", "422", "429", "500"} {
			add(Case{Level: OutageSafe, Fault: fault, Step: w.Step, Write: &w})
		}
		if isFirst := i == 0 || r.Writes[i-1].Step != w.Step; isFirst {
			add(Case{Level: CrashSafe, Fault: "term", Step: w.Step, Write: &w})
			add(Case{Level: OutageSafe, Fault: "hang", Step: w.Step, Write: &w})
		}
	}
}

// planSteps adds the faults that last for a while during a step.
func planSteps(r *Record, add func(Case)) {
	for step := range r.Steps {
		for _, fault := range []string{"down", "frozen"} {
			add(Case{Level: CrashSafe, Fault: fault, Step: step})
		}
		for _, fault := range []string{"gone", "dead-connections"} {
			add(Case{Level: CacheSafe, Fault: fault, Step: step})
		}
		for _, fault := range []string{"away", "all-401", "all-429", "all-500"} {
			add(Case{Level: OutageSafe, Fault: fault, Step: step})
		}
	}
}

// planWatches adds the faults of single resources.
func planWatches(r *Record, add func(Case)) {
	for _, fault := range []string{"repeated-events", "no-watch-list"} {
		add(Case{Level: CacheSafe, Fault: fault, Step: EachStep})
	}
	for _, request := range r.Requests {
		switch {
		case request.Verb == "watch":
			for step := range r.Steps {
				for _, fault := range []string{"stale", "lost-events"} {
					add(Case{Level: CacheSafe, Fault: fault, Step: step, Resource: request.Resource})
				}
			}
			add(Case{Level: CacheSafe, Fault: "slow-start", Step: 0, Resource: request.Resource})
		case request.Verb == "create" && !strings.HasPrefix(request.Resource, "events") && !strings.HasPrefix(request.Resource, "leases"):
			add(Case{Level: OutageSafe, Fault: "quota", Step: 0, Resource: request.Resource})
		}
		add(Case{Level: OutageSafe, Fault: "revoked", Step: 0, Resource: request.Resource, Verb: request.Verb})
	}
}

// planPlane adds the faults of the control plane's components.
func planPlane(add func(Case)) {
	for _, fault := range []string{"apiserver-restarts", "etcd-restarts", "etcd-frozen", "plane-away", "restored"} {
		add(Case{Level: OutageSafe, Fault: fault, Step: 0, Alone: true})
	}
}
