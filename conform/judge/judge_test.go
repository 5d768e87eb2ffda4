// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"

	"example.com/sample-controller/test/faults/proxy"
)

// object parses YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// A thing with a child, as stored: in the run of a namespace, with its own generated parts.
func things(t *testing.T, namespace, uid, random, hash string) []State {
	t.Helper()
	text := `
metadata: {name: a, namespace: NS, uid: UID, resourceVersion: "DAY", generation: 2}
spec: {size: 3, token: a-RANDOM, job: a-2993177DAY, owner: "of UID since 2026-01-0DAYT03:04:05Z"}
status: {observedGeneration: 2, message: "in NS", conditions: [{type: Ready, status: "True"}]}
`
	fill := strings.NewReplacer("NS", namespace, "UID", uid, "RANDOM", random, "HASH", hash, "DAY", hash[:1]).Replace
	child := `
metadata: {name: a-RANDOM, namespace: NS, uid: child-UID, labels: {pod-template-hash: HASH}, ownerReferences: [{kind: Thing, name: a, uid: UID}]}
spec: {address: 10.0.0.7, volumes: [{name: one}, {name: two}]}
status: {phase: Running}
`
	return []State{
		{Resource: "things.example.com", Version: 1, Object: object(t, fill(text))},
		{Resource: "pods", Version: 2, Object: object(t, fill(child))},
	}
}

func TestEqualRunsHaveEqualEnds(t *testing.T) {
	statuses := []string{"things.example.com"}
	a := EndOf(things(t, "conform-x", "8c0e2f6a-1111-2222-3333-444455556666", "x7z2b", "5d8f9c7b6d"), Options{Namespace: "conform-x", Statuses: statuses})
	b := EndOf(things(t, "conform-y", "9d0e2f6a-1111-2222-3333-444455556666", "q4w8r", "7c9b8d6f54"), Options{Namespace: "conform-y", Statuses: statuses})
	if diff := (Mask{}).Diff(a, b); len(diff) > 0 {
		t.Errorf("two equal runs differ: %q", diff)
	}
	if len(a) != 2 || a["things.example.com a"][0]["status.conditions[Ready].status"] != "True" {
		t.Errorf("the end is %v", a)
	}
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	const key = "things.example.com a"
	for name, row := range map[string]struct {
		change func(End)
		mask   Mask
		want   string
	}{
		"a field":                  {func(e End) { e[key][0]["spec.size"] = "4" }, nil, `spec.size is "4", want "3"`},
		"an additional field":      {func(e End) { e[key][0]["spec.more"] = "x" }, nil, `spec.more is "x", want ""`},
		"a missing object":         {func(e End) { delete(e, key) }, nil, "things.example.com a: there are 0, want 1"},
		"a second object":          {func(e End) { e["pods a-*"] = append(e["pods a-*"], Fields{}) }, nil, "pods a-*: there are 2, want 1"},
		"what always varies":       {func(e End) { e[key][0]["spec.size"] = "4" }, Mask{key + " spec.size": true}, ""},
		"a number that varies too": {func(e End) { delete(e, key) }, Mask{key + " ": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Statuses: []string{"things.example.com"}}
			want, got := EndOf(things(t, "ns", "u", "x7z2b", "5"), o), EndOf(things(t, "ns", "u", "x7z2b", "5"), o)
			row.change(got)
			diff := row.mask.Diff(want, got)
			if row.want == "" && len(diff) > 0 || row.want != "" && (len(diff) != 1 || !strings.Contains(diff[0], row.want)) {
				t.Errorf("the difference is %q, want %q", diff, row.want)
			}
		})
	}
}

func TestAnEndMayHaveObjectsThatAreBeingDeleted(t *testing.T) {
	there := State{"things", 1, false, object(t, `{kind: Thing, metadata: {name: a}}`)}
	going := State{"things", 1, false, object(t, `{kind: Thing, metadata: {name: b, deletionTimestamp: "2026-01-01T00:00:00Z"}}`)}
	if EndOf([]State{there}, Options{}).IsDeleting() || !EndOf([]State{there, going}, Options{}).IsDeleting() {
		t.Error("an object that is being deleted is not noticed, or one that isn't is")
	}
}

func TestWhatIsNotCompared(t *testing.T) {
	states := things(t, "ns", "u", "x7z2b", "5")
	end := EndOf(states, Options{Ignore: []*regexp.Regexp{regexp.MustCompile(`^things\S* a spec\.size$`), regexp.MustCompile(`^pods `)}})
	if _, ok := end["pods a-*"]; ok {
		t.Error("Pods are compared, although the settings ignore them, without a path")
	}
	for path := range end["things.example.com a"][0] {
		if strings.HasPrefix(path, "status.") || path == "spec.size" {
			t.Errorf("%s is compared, although others write the status, and the settings ignore the size", path)
		}
	}
}

func TestAStatusOfAnotherGenerationIsNotThatOfThisOne(t *testing.T) {
	o := Options{Statuses: []string{"things.example.com"}}
	states := things(t, "ns", "u", "x7z2b", "5")
	want := EndOf(states, o)
	states[0].Object["status"].(map[string]any)["observedGeneration"] = int64(1)
	if diff := (Mask{}).Diff(want, EndOf(states, o)); len(diff) != 1 || !strings.Contains(diff[0], `"stale", want "current"`) {
		t.Errorf("the difference is %q", diff)
	}
}

func TestVaryingIsWhatDiffersBetweenEnds(t *testing.T) {
	ends := []End{
		{"a": {{"x": "1", "y": "1"}}, "b": {{}}},
		{"a": {{"x": "2", "y": "1"}}, "b": {{}, {}}},
		{"a": {{"x": "1", "y": "1", "z": "1"}}, "b": {{}}},
	}
	mask := Varying(ends)
	for _, path := range []string{"a x", "a z", "b "} {
		if !mask[path] {
			t.Errorf("%q is not among what varies, %v", path, mask)
		}
	}
	if mask["a y"] || len(mask) != 3 {
		t.Errorf("what varies is %v", mask)
	}
}

func TestObjectsOfOneKeyAreComparedWithTheMostAlike(t *testing.T) {
	want := End{"a": {{"image": "1", "size": "0"}, {"image": "2", "size": "3"}}}
	got := End{"a": {{"history": "1", "image": "2", "size": "3"}, {"image": "1", "size": "0"}}}
	if diff := (Mask{}).Diff(want, got); len(diff) != 1 || !strings.Contains(diff[0], `history is "1", want ""`) {
		t.Errorf("the difference is %q", diff)
	}
	if mask := Varying([]End{want, got}); len(mask) != 1 || !mask["a history"] {
		t.Errorf("what varies is %v", mask)
	}
}

// call makes a request at a second of the run.
func call(second int, method, resource, subresource string) *proxy.Call {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete", http.MethodGet: "list"}[method]
	return &proxy.Call{
		RequestInfo: request.RequestInfo{IsResourceRequest: true, Verb: verb, Resource: resource, Subresource: subresource, Name: "a"},
		Method:      method, Began: time.Unix(int64(second), 0), Code: http.StatusOK,
	}
}

// goodRun is a run of two steps that breaks no rule: a thing gets a child, and is scaled.
func goodRun(t *testing.T) *Run {
	t.Helper()
	state := func(version uint64, resource, text string) State {
		return State{Resource: resource, Version: version, Object: object(t, text)}
	}
	owner := func(generation, observed, ready string) string {
		return `{kind: Thing, metadata: {name: a, uid: u, generation: ` + generation + `, labels: {conform.example.com/kept: "yes"}},
			status: {observedGeneration: ` + observed + `, conditions: [{type: Ready, status: "` + ready + `"}]}}`
	}
	child := func(size, ready string) string {
		return `{kind: Child, metadata: {name: c, uid: v, ownerReferences: [{kind: Thing, name: a}]}, spec: {size: ` + size + `},
			status: {conditions: [{type: Ready, status: "` + ready + `"}]}}`
	}
	return &Run{
		Case: Case{Level: CrashSafe, Fault: "kill-after", Name: "x"}, Reached: true, Options: Options{Statuses: []string{"things"}},
		Calls: []*proxy.Call{
			call(1, http.MethodPost, "children", ""), call(2, http.MethodPut, "things", "status"),
			call(11, http.MethodPut, "children", ""), call(12, http.MethodPut, "things", "status"), call(13, http.MethodPut, "things", "status"),
		},
		History: []State{
			state(1, "things", owner("1", "0", "False")), state(2, "children", child("1", "False")),
			state(3, "children", child("1", "True")), state(4, "things", owner("1", "1", "True")),
			state(5, "things", owner("2", "1", "True")), state(6, "children", child("2", "False")),
			state(7, "children", child("2", "True")), state(8, "things", owner("2", "2", "True")),
		},
		Steps: []Step{
			{Name: "create", Began: time.Unix(0, 0), Quiet: true, Generations: map[string]int64{"u": 1}},
			{Name: "scale", Began: time.Unix(10, 0), From: 4, Quiet: true, Generations: map[string]int64{"u": 2}},
		},
	}
}

// judged returns a good run that is completed with its ends, and its record.
func judged(t *testing.T) (*Record, *Run) {
	t.Helper()
	run := goodRun(t)
	run.Steps[0].End = EndOf(Latest(run.History[:4]), run.Options)
	run.Steps[1].End = EndOf(Latest(run.History), run.Options)
	return Common([]*Run{run, run, run}, run), run
}

func TestAGoodRunBreaksNoRule(t *testing.T) {
	if findings := Judge(judged(t)); len(findings) > 0 {
		t.Errorf("found %v", findings)
	}
}

func TestEachRuleCanBeBroken(t *testing.T) {
	for name, row := range map[string]struct {
		breaks            func(t *testing.T, r *Run)
		level, rule, want string
	}{
		"another end": {func(_ *testing.T, r *Run) { r.Steps[1].End = r.Steps[0].End },
			CrashSafe, "end", `step scale: children c: spec.size is "1", want "2"`},
		"it never comes to rest": {func(_ *testing.T, r *Run) { r.Steps[1].Quiet = false },
			CrashSafe, "end", "it is still writing: PUT things/a/status"},
		"a write at rest": {func(_ *testing.T, r *Run) {
			r.Silent = []Window{{time.Unix(12, 1), time.Unix(99, 0), "at rest"}}
		}, CrashSafe, "silence", "at rest, it wrote PUT things/a/status"},
		"the process ends": {func(_ *testing.T, r *Run) { r.Exits = []Exit{{How: "exit status 2"}} },
			CrashSafe, "lives", "exit status 2"},
		"another writer's label is lost": {func(t *testing.T, r *Run) {
			r.History = append(r.History, State{"things", 9, false, object(t, `{kind: Thing, metadata: {name: a, uid: u}}`)})
		}, Quiet, "others' writes stay", "things a lost"},
		"a deletion without a precondition": {func(_ *testing.T, r *Run) {
			r.Calls = append(r.Calls, call(14, http.MethodDelete, "children", ""))
		}, CacheSafe, "deletions have a precondition", "DELETE children/a"},
		"a second child that goes again": {func(t *testing.T, r *Run) {
			second := State{"children", 5, false, object(t, `{kind: Child, metadata: {name: c, uid: w, ownerReferences: [{kind: Thing, name: a}]}}`)}
			gone := second
			gone.Deleted = true
			r.History = slices.Insert(r.History, 5, second, gone)
		}, CacheSafe, "no surplus", "step scale: there were 2 at once of children c, and without a fault at most 1"},
		"ready before the child is": {func(_ *testing.T, r *Run) {
			r.History[6], r.History[7] = r.History[7], r.History[6]
			swapVersions(r, 6)
		},
			Honest, "status", "things a said ready in step scale, but children c was not ready"},
		"ready without the child": {func(_ *testing.T, r *Run) {
			r.History[3].Version = 1
			r.History = append([]State{r.History[3]}, r.History[4:]...)
		}, Honest, "status", "said ready in step create, but children c was not there"},
		"ready by a child that was gone before": {func(t *testing.T, r *Run) {
			gone := r.History[2]
			gone.Version, gone.Deleted = 3, true
			again := r.History[0]
			again.Version, again.Object = 4, object(t, `{kind: Thing, metadata: {name: a, uid: w, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`)
			r.Steps[0].Generations["w"] = 1
			r.History = append(r.History[:2:2], gone, again)
		}, Honest, "status", "said ready in step create, but children c was not there"},
		"ready for a spec that was not seen": {func(t *testing.T, r *Run) {
			r.History[4] = State{"things", 5, false, object(t, `{kind: Thing, metadata: {name: a, uid: u, generation: 2,
				labels: {conform.example.com/kept: "yes"}}, status: {conditions: [{type: Ready, status: "True"}]}}`)}
		}, Honest, "status", "said ready in step scale, but children c was not there as asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			record, run := judged(t)
			row.breaks(t, run)
			findings := Judge(record, run)
			if len(findings) != 1 || findings[0].Level != row.level || findings[0].Rule != row.rule || !strings.Contains(findings[0].Text, row.want) {
				t.Errorf("found %q, want one of level %s, rule %s: %s", findings, row.level, row.rule, row.want)
			}
		})
	}
}

func TestWhatTouchesAloneChangeIsNotComparedWithAStaleCache(t *testing.T) {
	_, run := judged(t)
	touching := goodRun(t)
	touching.Steps[0].End = run.Steps[0].End
	touching.Steps[1].End = End{}
	maps.Copy(touching.Steps[1].End, run.Steps[1].End)
	touching.Steps[1].End["children c"] = []Fields{maps.Clone(run.Steps[1].End["children c"][0])}
	touching.Steps[1].End["children c"][0]["metadata.annotations.copied"] = "2"
	record := Common([]*Run{run, run, run}, touching)
	stale := *run
	stale.Case = Case{Level: CacheSafe, Fault: "stale"}
	stale.Steps = slices.Clone(touching.Steps)
	if findings := Judge(record, &stale); len(findings) > 0 {
		t.Errorf("found %v", findings)
	}
	stale.Case.Fault = "gone"
	if findings := Judge(record, &stale); len(findings) != 1 || !strings.Contains(findings[0].Text, "annotations.copied") {
		t.Errorf("in a case that touches nothing, found %v", findings)
	}
}

func TestSaysReady(t *testing.T) {
	run := goodRun(t)
	if !SaysReady(run) {
		t.Error("an object that says so does not")
	}
	run.Options.Ready = "Available"
	if SaysReady(run) {
		t.Error("without the condition Available, an object says that it is available")
	}
	for i, s := range run.History {
		content, err := json.Marshal(s.Object)
		if err != nil {
			t.Fatal(err)
		}
		run.History[i].Object = object(t, strings.ReplaceAll(string(content), `"Ready"`, `"Available"`))
	}
	if !SaysReady(run) {
		t.Error("an object that says by another condition that it is ready does not")
	}
	run.History = run.History[:3]
	if SaysReady(run) {
		t.Error("an object that is not ready says that it is")
	}
}

func swapVersions(r *Run, i int) {
	r.History[i].Version, r.History[i+1].Version = r.History[i+1].Version, r.History[i].Version
}

func TestWhatIsNoFinding(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *Run){
		"a deletion with a precondition": func(_ *testing.T, r *Run) {
			d := call(14, http.MethodDelete, "children", "")
			d.Body = []byte(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"v"}}`)
			r.Calls = append(r.Calls, d)
		},
		"a second child whose creation got no answer": func(t *testing.T, r *Run) {
			second := State{"children", 5, false, object(t, `{kind: Child, metadata: {name: c, uid: w, ownerReferences: [{kind: Thing, name: a}]}}`)}
			gone := second
			gone.Deleted = true
			r.History = slices.Insert(r.History, 5, second, gone)
			r.Case.Level = OutageSafe
		},
		"a child in the place of one that is being deleted": func(t *testing.T, r *Run) {
			ending := State{"children", 9, false, object(t, `{kind: Child, metadata: {name: c, uid: v, deletionTimestamp: "2026-01-01T00:00:00Z"}}`)}
			second := State{"children", 9, false, object(t, `{kind: Child, metadata: {name: c, uid: w, ownerReferences: [{kind: Thing, name: a}]}}`)}
			r.History = append(r.History, ending, second)
		},
		"a child of another owner": func(t *testing.T, r *Run) {
			other := `{kind: Child, metadata: {name: c, uid: w, ownerReferences: [{kind: Other, name: b, uid: x, controller: true}]}}`
			r.History = append(r.History, State{"children", 9, false, object(t, other)})
		},
		"Events and Leases at rest": func(_ *testing.T, r *Run) {
			r.Silent = []Window{{time.Unix(12, 1), time.Unix(12, 2), "a moment"}, {time.Unix(13, 1), time.Unix(99, 0), "at rest"}}
			r.Calls = append(r.Calls, call(20, http.MethodPost, "events", ""), call(21, http.MethodPut, "leases", ""))
		},
		"a child that was there, and is gone when the status says ready": func(_ *testing.T, r *Run) {
			gone := r.History[6]
			gone.Version, gone.Deleted = 8, true
			r.History[7].Version = 9
			r.History = append(r.History[:7:7], gone, r.History[7])
		},
	} {
		t.Run(name, func(t *testing.T) {
			record, run := judged(t)
			change(t, run)
			if findings := Judge(record, run); len(findings) > 0 {
				t.Errorf("found %v", findings)
			}
		})
	}
}
