// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/faults/proxy"
)

func TestWritesAreCountedInEachStep(t *testing.T) {
	_, run := judged(t)
	run.Calls = append(run.Calls, call(14, http.MethodGet, "things", ""), call(15, http.MethodPost, "events", ""), call(16, http.MethodPost, "tokenreviews", ""))
	want := []Write{
		{0, "POST", "children", 1}, {0, "PUT", "things/status", 1},
		{1, "PUT", "children", 1}, {1, "PUT", "things/status", 1}, {1, "PUT", "things/status", 2},
	}
	if got := run.Writes(); !slices.Equal(got, want) {
		t.Errorf("the writes are %v, want %v", got, want)
	}
}

func TestOnlyWritesOfEachRunMeetAFault(t *testing.T) {
	_, a := judged(t)
	_, b := judged(t)
	b.Calls = b.Calls[:4]
	if writes := Common([]*Run{a, b}, a).Writes; len(writes) != 4 || slices.Contains(writes, Write{1, "PUT", "things/status", 2}) {
		t.Errorf("the writes are %v", writes)
	}
}

func TestThePlanHasEachFaultOfEachWrite(t *testing.T) {
	_, run := judged(t)
	for second := 20; second < 24; second++ { // seven in all
		run.Calls = append(run.Calls, call(second, http.MethodPut, "things", "status"))
	}
	run.Calls = append(run.Calls, &proxy.Call{RequestInfo: call(0, http.MethodGet, "children", "").RequestInfo, Began: time.Unix(1, 0)})
	cases := Plan(Common([]*Run{run}, run), false)
	names := map[string]int{}
	for _, c := range cases {
		names[c.Name]++
		if names[c.Name] > 1 {
			t.Errorf("two cases have the name %s", c.Name)
		}
	}
	for _, name := range []string{
		"crash-safe/kill-before/create/POST-children-1", "crash-safe/kill-after/scale/PUT-things.status-2",
		"crash-safe/kill-after/scale/PUT-things.status-6", "crash-safe/term/scale/PUT-children-1",
		"outage-safe/revoked/create/list-children", "outage-safe/quota/create/create-children", "outage-safe/restored/create",
		"replicas/two-at-once/run", "quiet/rest/create",
	} {
		if names[name] == 0 && names[strings.Replace(name, "create-children", "children", 1)] == 0 {
			t.Errorf("there is no case %s", name)
		}
	}
	for _, name := range []string{"crash-safe/kill-after/scale/PUT-things.status-4", "replicas/leader-killed/create"} {
		if names[name] > 0 {
			t.Errorf("there is a case %s, although the write is like others, or no leader is elected", name)
		}
	}
}

func TestAFailureCountsIfEachAttemptHasIt(t *testing.T) {
	c := Case{Level: CrashSafe, Fault: "kill-after", Name: "x"}
	bad, other := Finding{CrashSafe, "end", "first"}, Finding{Honest, "status", "lie"}
	r := &Results{}
	for attempts, want := range map[string]bool{"passes": true, "1": false, "2": false, "3": true} {
		found := map[string][][]Finding{"passes": {{bad}, {}}, "1": {{bad}}, "2": {{bad}, {bad}}, "3": {{bad}, {bad}, {bad}}}[attempts]
		if got := r.Decided(c, found); got != want {
			t.Errorf("%s: Decided is %t", attempts, got)
		}
	}
	if common := Common3([][]Finding{{bad, other}, {other}, {bad, other}}); len(common) != 1 || common[0] != other {
		t.Errorf("each attempt has %v", common)
	}
	r.Judged(c, []Finding{other})
	if !r.Decided(c, [][]Finding{{other}}) {
		t.Error("a rule of every case that is known to fail needs further attempts")
	}
	for range 2 {
		r.Judged(c, []Finding{bad})
	}
	if r.Decided(c, [][]Finding{{bad}}) {
		t.Error("a case is decided by its first failure because another case failed")
	}
	if r.FailedOften(c) {
		t.Error("two failures are enough")
	}
	if r.Judged(c, []Finding{bad}); !r.FailedOften(c) {
		t.Error("three failures are not enough")
	}
}

func TestTheReportHasVerdictsFailuresAndWhatIsNotJudged(t *testing.T) {
	r := &Results{Command: "go run ./conform"}
	r.Judged(Case{Level: CrashSafe, Fault: "kill-after", Name: "crash-safe/kill-after/x"}, []Finding{{CrashSafe, "end", "it is gone"}})
	r.Judged(Case{Level: OutageSafe, Fault: "500"}, nil)
	r.NotJudged(Replicas, "leader", "no election")
	for level, want := range map[string]string{CrashSafe: "fails", OutageSafe: "holds", Replicas: "not judged", Honest: "holds"} {
		if got := r.Verdict(level); got != want {
			t.Errorf("%s %s, want %s", level, got, want)
		}
	}
	text := r.Markdown()
	r.Chosen = "kill"
	if got, chosen := r.Verdict(OutageSafe), r.Markdown(); got != "holds in the chosen cases" || !strings.Contains(chosen, "match `kill`") {
		t.Errorf("the level of chosen cases %s, and the report is\n%s", got, chosen)
	}
	for _, want := range []string{
		"| crash-safe | kill-after | 1 | **fails** 1/1 |", "| outage-safe | 500 | 1 | passes |",
		"| replicas | leader | 0 | -; not judged: no election |", "- **crash-safe/kill-after/x** (end): it is gone",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	junit, err := r.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<testsuite name="crash-safe" tests="1" failures="1" skipped="0">`, `<skipped message="no election">`, `<testsuite name="replicas" tests="1" failures="0" skipped="1">`} {
		if !strings.Contains(string(junit), want) {
			t.Errorf("the JUnit report lacks %q:\n%s", want, junit)
		}
	}
}

func TestDefinitionsAreStructuralAndHaveTheStatusApart(t *testing.T) {
	for name, row := range map[string]struct {
		crd   string
		wants []string
	}{
		"good": {`{spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object}}}}, subresources: {status: {}}}]}}`, nil},
		"status in the object": {`{spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object}}}}}]}}`,
			[]string{"the status is no subresource"}},
		"keeps all": {`{spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
			[]string{"keeps unknown fields"}},
		"not structural": {`{status: {conditions: [{type: NonStructuralSchema, status: "True", message: why}]}}`, []string{"not structural: why"}},
		"not served":     {`{spec: {versions: [{name: v1, served: false}]}}`, nil},
	} {
		findings := JudgeDefinition(object(t, row.crd))
		if len(findings) != len(row.wants) || len(findings) > 0 && !strings.Contains(findings[0].Text, row.wants[0]) {
			t.Errorf("%s: found %v, want %q", name, findings, row.wants)
		}
	}
}

func TestAControllerThatOnlyReportsCreatesNothing(t *testing.T) {
	status := Write{Method: http.MethodPatch, Resource: "things/status", Nth: 1}
	finalizer := Write{Method: http.MethodPut, Resource: "things", Nth: 1}
	if r := (&Record{Writes: []Write{status, finalizer}}); r.CreatesSomething() {
		t.Error("statuses and finalizers count as created")
	}
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		if r := (&Record{Writes: []Write{status, {Method: method, Resource: "pods", Nth: 1}}}); !r.CreatesSomething() {
			t.Errorf("a %s of a Pod is not noticed", method)
		}
	}
}
