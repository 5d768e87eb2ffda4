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
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// workload is what users do in one run.
type workload struct {
	name string
	// before is there when the controller starts.
	before []step
	steps  []step
}

var workloads = []workload{
	{name: "scale", steps: []step{
		create("a", "web", 2), scale("a", 3), scale("a", 1),
	}},
	{name: "rename", steps: []step{
		create("a", "web", 2), rename("a", "api"), rename("a", "web"),
	}},
	{name: "rename and scale", before: []step{create("a", "web", 1)}, steps: []step{
		atOnce(rename("a", "api"), scale("a", 2)), atOnce(rename("a", "db"), rename("a", "api")),
	}},
	{name: "drift", steps: []step{
		create("a", "web", 1), drift("web"), atOnce(edit("web", "1"), scale("a", 2)), atOnce(edit("web", "2"), drift("web")), deleteDeployment("web"),
	}},
	{name: "recreate", steps: []step{
		create("a", "web", 1), deleteFoo("a"), create("a", "web", 1), atOnce(deleteFoo("a"), create("a", "web", 2)),
	}},
	{name: "foreground", steps: []step{
		create("a", "web", 1), deleteFooInForeground("a"), create("a", "web", 1),
	}},
	{name: "two Foos", steps: []step{
		create("a", "web", 1), create("b", "web", 2), deleteFoo("a"),
	}},
	{name: "foreign", before: []step{createForeign("web")}, steps: []step{
		create("a", "web", 1), deleteDeployment("web"),
	}},
	{name: "adopt", before: []step{createForeign("web")}, steps: []step{
		create("a", "web", 2), handOver("web", "a"), edit("web", "1"),
	}},
	{name: "rename onto a taken name", before: []step{createForeign("api"), create("a", "web", 1)}, steps: []step{
		rename("a", "api"), deleteDeployment("api"),
	}},
	{name: "autoscaled", steps: []step{
		create("a", "web", 0), scaleDeployment("web", 2), rename("a", "api"),
	}},
}

// TestGauntlet runs each workload without a fault, then once for each moment of
// that run and each fault that can strike there: see docs/testing.md.
func TestGauntlet(t *testing.T) {
	total, every := 0, sampling()
	for _, workload := range workloads {
		t.Run(workload.name, func(t *testing.T) {
			reference := workload.runWithoutFaults(t)
			for _, at := range reference.moments {
				for _, fault := range faultsAt(at) {
					total++
					if total%every != 0 {
						continue
					}
					t.Run(at.String()+"/"+fault.name, func(t *testing.T) {
						t.Parallel()
						workload.runWith(t, at, fault, reference)
					})
				}
			}
		})
	}
	// To stdout, which "go test" without a package's name shows of a test that passes, too.
	fmt.Printf("gauntlet: %d triples of workload, call or event, and fault; 1 of %d was run\n", total, every)
}

// sampling says of how many triples one is run: of one, all. What looks for data
// races and for changed cache objects makes a run a hundred times as long, and
// finds them in a few. Who names a triple gets it.
func sampling() int {
	if strings.Count(flag.Lookup("test.run").Value.String(), "/") < 2 && slowed() {
		return 100
	}
	return 1
}

// slowed tells whether races or changed cache objects are looked for.
func slowed() bool {
	info, _ := debug.ReadBuildInfo()
	race := info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	return race || os.Getenv("KUBE_CACHE_MUTATION_DETECTOR") == "true"
}

func withoutFaults(moment) fault { return fault{} }

// storm is how many calls and events a run must not come to. Without faults there
// are less than 100.
const storm = 200

// reference is the run of a workload without faults.
type reference struct {
	moments []moment
	state   state
}

func (l workload) runWithoutFaults(t *testing.T) reference {
	t.Helper()
	var r reference
	w := l.run(t, withoutFaults, func(w *world) {
		r.state = w.judge(restTime)
		if w.refused > 0 {
			w.complain("%d calls were refused, without a fault", w.refused)
		}
	})
	r.moments = w.moments
	w.report(t)
	return r
}

func (l workload) runWith(t *testing.T, at moment, f fault, r reference) {
	t.Helper()
	struck := false
	strikeAt := func(m moment) fault {
		if m != at {
			return fault{}
		}
		struck = true
		return f
	}
	l.run(t, strikeAt, func(w *world) {
		w.judgeAgainst(r.state, w.judge(restTime))
		if len(w.moments) > storm {
			w.complain("there was a storm: %d calls and events, of %d without the fault", len(w.moments), len(r.moments))
		}
		if !struck {
			w.complain("%s never came: the run without faults was another one", at)
		}
	}).report(t)
}

// run has a world of its own go through a workload, and judges it before it ends.
func (l workload) run(t *testing.T, strikeAt func(moment) fault, judge func(*world)) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(strikeAt)
		defer w.end()
		for _, s := range l.before {
			s.do(w)
			advance(settleTime)
		}
		w.startController(asEver)
		advance(settleTime)
		for _, s := range l.steps {
			w.do(s)
		}
		judge(w)
	})
	return w
}

// report fails a test for each complaint, and says what happened and how to see
// it again.
func (w *world) report(t *testing.T) {
	t.Helper()
	if len(w.complaints) == 0 {
		return
	}
	for _, complaint := range w.complaints {
		t.Error(complaint)
	}
	t.Logf("what happened:\n%s", strings.Join(w.journal, "\n"))
	t.Logf("to repeat it: go test . -count=1 -run '%s'", pattern(t.Name()))
}

// pattern matches one test and no other.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}
