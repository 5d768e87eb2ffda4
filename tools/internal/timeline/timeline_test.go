// SPDX-License-Identifier: Apache-2.0

// Tests of which writes a timeline has, in which words, and of their causes and owners.

package timeline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
)

// TestTheLifeOfAFoo reads a recorded log, at level Metadata, of a Foo that is created, scaled
// to 3, and deleted. Look at the picture before you replace it: each write has a row and a
// mark in its actor's lane, and an arrow leads to it from its cause.
func TestTheLifeOfAFoo(t *testing.T) {
	var log Log
	if err := audit.ReadFile("testdata/life.log", nil, log.Add, t.Output()); err != nil {
		t.Fatal(err)
	}
	timeline := of(t, &log, "", "example-foo")
	for path, write := range map[string]func(io.Writer) error{"testdata/life.txt": timeline.WriteText, "testdata/life.svg": timeline.WriteSVG} {
		want, err := os.ReadFile(path)
		var got strings.Builder
		if err := errors.Join(err, write(&got)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(strings.Fields(got.String()), strings.Fields(string(want))) {
			t.Errorf("%s is not\n%s", path, got.String())
		}
	}
	if timeline.Others != 47 {
		t.Errorf("%d other writes", timeline.Others)
	}
}

var foos = kinds.Declared(kinds.Options{})[0]

func of(t *testing.T, log *Log, namespace, foo string) *Timeline {
	t.Helper()
	timeline, err := log.Of(foos, namespace, foo)
	if err != nil {
		t.Fatal(err)
	}
	return timeline
}

func TestPanels(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"an act before the last effect of another": {[]string{
			"0 alice create foos/web", "400 web-controller create deployments/web", "401 alice patch foos.scale/web",
			"402 deployment-controller create replicasets/web-1", "410 web-controller update deployments/web",
		}, []string{"alice: create foos web", "alice: patch foos/scale web"}},
		"two people":    {[]string{"0 alice create foos/a", "1 bob create foos/b"}, []string{"alice: create foos a", "bob: create foos b"}},
		"another verb":  {[]string{"0 alice create foos/a", "1 alice delete foos/a"}, []string{"alice: create foos a", "alice: delete foos a"}},
		"no one's act":  {[]string{"0 x update foos.status/a"}, []string{"x: update foos/status a"}},
		"after a while": {[]string{"0 x update foos.status/a", "100 x update foos.status/a", "9000 x update foos.status/a"}, []string{"x: update foos/status a", "x: update foos/status a"}},
	}
	for name, test := range tests {
		var got []string
		for _, panel := range of(t, logOf(test.writes...), "", "").Panels {
			got = append(got, panel.Title)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestWhatBelongsToAFoo(t *testing.T) {
	writes := []string{
		"0 alice create foos/web",
		"5 web-controller create deployments/web",
		"8 deployment-controller create replicasets/web-1",
		"10 bob create foos/b:web",
		"12 web-controller create deployments/b:web",
		"20 alice create deployments/other",
		"25 deployment-controller create replicasets/other-1",
		"30 alice patch deployments/web",
		"35 alice create deployments/web-2",
		"40 gc patch leases/x", "41 gc create events/x",
		"50 alice create foos/new", "55 bob create deployments/web 409",
	}
	tests := map[string]struct {
		namespace, foo, title string
		want                  []int64 // the writes, by their ms
	}{
		"a Foo":                 {"default", "web", "The life of Foo web in default", []int64{0, 5, 8, 30, 55}},
		"a name of two":         {"", "web", "The life of Foo web", []int64{0, 5, 8, 10, 12, 30, 55}},
		"a Foo without effects": {"default", "new", "The life of Foo new in default", []int64{50}},
	}
	for name, test := range tests {
		timeline := of(t, logOf(writes...), test.namespace, test.foo)
		var got []int64
		for _, e := range entriesOf(timeline) {
			got = append(got, e.Received.Sub(noon).Milliseconds())
		}
		if slices.Sort(got); !slices.Equal(got, test.want) || timeline.Title != test.title || timeline.Others != len(writes)-len(got) {
			t.Errorf("%s: got %q with %v and %d others", name, timeline.Title, got, timeline.Others)
		}
	}
	bars := &plan.Kind{Name: "Bar", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "bars"}}
	drawn, err := logOf("0 alice create bars/a", "1 x create deployments/a-1", "2 alice create foos/a-1").Of(bars, "", "a")
	if err != nil || drawn.Title != "The life of Bar a in default" || drawn.Others != 1 {
		t.Errorf("another kind: got %+v, %v", drawn, err)
	}
	for _, log := range []*Log{{}, logOf("0 gc patch leases/x", "1 alice create deployments/web")} {
		if _, err := log.Of(foos, "", ""); !errors.Is(err, errNothing) {
			t.Errorf("got %v", err)
		}
	}
}

func entriesOf(t *Timeline) []*Entry {
	var entries []*Entry
	for _, panel := range t.Panels {
		entries = append(entries, panel.Entries...)
	}
	return entries
}

func TestTheUserIsYou(t *testing.T) {
	log := logOf("0 alice create foos/web", "1 bob patch foos/web", "2 operator update foos.status/web")
	log.You = "alice"
	var got []string
	for _, e := range entriesOf(of(t, log, "", "")) {
		got = append(got, e.Actor)
	}
	if want := []string{"you", "bob", "operator"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNotes(t *testing.T) {
	three := 3
	ready := []audit.Condition{{Type: "Ready", Status: "True", Reason: "AsAsked"}, {Type: "Other", Status: "False", Reason: "X"}}
	waits := []audit.Condition{{Type: "Ready", Status: "False", Reason: "Progressing"}}
	replicas := map[string]any{"replicas": 3.0}
	bound := audit.Object{Kind: "Binding", Target: struct{ Name string }{"node-1"}}
	tests := map[string]struct {
		write             string
		request, response *audit.Object
		want              string
	}{
		"ready":                {"update foos.status/a", nil, &audit.Object{Spec: replicas, Status: audit.Status{AvailableReplicas: &three, Conditions: ready}}, "3/3 available, Ready"},
		"not ready":            {"update foos.status/a", nil, &audit.Object{Spec: replicas, Status: audit.Status{Conditions: waits}}, "0/3 available, Progressing"},
		"without replicas":     {"update foos.status/a", nil, &audit.Object{Status: audit.Status{AvailableReplicas: &three}}, "3 available"},
		"without a status":     {"update bars.status/a", nil, &audit.Object{}, ""},
		"a Pod that is ready":  {"patch pods.status/a", nil, &audit.Object{Status: audit.Status{Phase: "Running", Conditions: ready}}, "Ready"},
		"a Pod that is not":    {"patch pods.status/a", nil, &audit.Object{Status: audit.Status{Phase: "Running", Conditions: waits}}, "Running, Progressing"},
		"refused":              {"update pods.status/a 409", &audit.Object{Status: audit.Status{Phase: "Failed"}}, &audit.Object{Kind: "Status"}, "409 Conflict"},
		"replicas":             {"patch foos.scale/a", &audit.Object{}, &audit.Object{Kind: "Scale", Spec: replicas}, "replicas 3"},
		"a request only":       {"create foos/a", &audit.Object{Spec: replicas}, nil, "replicas 3"},
		"a binding":            {"create pods.binding/a", &bound, &audit.Object{Kind: "Status"}, "to node-1"},
		"a deletion":           {"delete replicasets/a", nil, &audit.Object{Spec: replicas}, ""},
		"a log without bodies": {"create foos/a", nil, nil, ""},
	}
	for name, test := range tests {
		w := parseWrite("5 alice " + test.write)
		w.Request, w.Response = test.request, test.response
		log := logOf("0 alice create foos/a", "1 x create pods/a", "1 x create bars/a", "2 x create replicasets/a")
		log.Add(w)
		entries := entriesOf(of(t, log, "", ""))
		if e := entries[len(entries)-1]; e.Verb != w.Verb || e.Result != test.want {
			t.Errorf("%s: got %q of %s, want %q", name, e.Result, e.Object, test.want)
		}
		if e := log.entries[len(log.entries)-1]; e.Request != nil || e.Response != nil {
			t.Errorf("%s: the log keeps an object, which may be large", name)
		}
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// users returns the user and the user agent for the short name of an actor.
func users(name string) (user, agent string) {
	switch name {
	case "gc":
		return "system:serviceaccount:kube-system:generic-garbage-collector", "kube-controller-manager/v1"
	case "scheduler":
		return "system:kube-scheduler", "kube-scheduler/v1"
	case "kubelet":
		return "system:node:n1", "kubelet/v1"
	case "alice", "bob":
		return name, "kubectl/v1"
	case "operator": // runs with a person's kubeconfig
		return "alice", "operator/v1"
	}
	return "system:serviceaccount:kube-system:" + name, name + "/v1"
}

// parseWrite parses a write: the time at which it was received, in ms, the actor, the
// verb, the resource with its subresource and name, and the code if the server refused
// the write.
func parseWrite(text string) audit.Write {
	fields := strings.Fields(text)
	ms, err := strconv.Atoi(fields[0])
	if err != nil || len(fields) < 4 {
		panic(fmt.Sprintf("%q: want MS USER VERB RESOURCE[.PART]/[NAMESPACE:]NAME [CODE]", text))
	}
	w := audit.Write{Verb: fields[2], Namespace: "default", Code: 200, Received: noon.Add(time.Duration(ms) * time.Millisecond)}
	w.User, w.Agent = users(fields[1])
	resource, name, _ := strings.Cut(fields[3], "/")
	w.Resource, w.Subresource, _ = strings.Cut(resource, ".")
	w.Name = name
	if namespace, name, ok := strings.Cut(name, ":"); ok {
		w.Namespace, w.Name = namespace, name
	}
	w.Group = map[string]string{"foos": foos.Resource.Group, "bars": "example.com", "deployments": "apps", "replicasets": "apps"}[w.Resource]
	if len(fields) > 4 {
		w.Code, _ = strconv.Atoi(fields[4])
	}
	return w
}

func logOf(texts ...string) *Log {
	var log Log
	for _, text := range texts {
		log.Add(parseWrite(text))
	}
	return &log
}

// ownedBy returns an object with an owner reference.
func ownedBy(apiVersion, kind, name string) *audit.Object {
	controls := true
	owner := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controls}
	return &audit.Object{Metadata: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}}
}

const none = -1

// causesIn returns the index of each entry's cause.
func causesIn(log *Log) []int {
	entries := log.ordered()
	ownersOf(foos, entries).findCauses(entries)
	var got []int
	for _, e := range entries {
		got = append(got, slices.Index(entries, e.Cause))
	}
	return got
}

// TestCauses has what the recorded life of a Foo does not show.
func TestCauses(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []int
	}{
		"a controller with a person's kubeconfig": {[]string{
			"0 alice create foos/web",
			"5 operator create deployments/web",
			"9 operator update foos.status/web",
		}, []int{none, 0, 0}},
		"a deletion by the garbage collector": {[]string{
			"0 alice delete foos/web",
			"5 gc delete deployments/web",
			"9 gc delete replicasets/web-1",
			"12 gc delete pods/web-1-x",
			"15 kubelet delete pods/web-1-x",
			"90000 gc delete pods/web-1-y",
		}, []int{none, 0, 1, 2, 3, 2}},
		"no deletion long after the owner's": {[]string{
			"0 alice delete foos/web", "70000 deployment-controller update deployments.status/web",
		}, []int{none, none}},
		"a kubelet does not look at ReplicaSets": {[]string{
			"0 deployment-controller create replicasets/web-1",
			"1 replicaset-controller create pods/web-1-x",
			"2 deployment-controller update replicasets/web-1",
			"3 kubelet patch pods.status/web-1-x",
		}, []int{none, 0, 1, 1}},
		"a Pod replaces a deleted one": {[]string{
			"0 replicaset-controller update replicasets.status/web-1",
			"1 alice delete pods/web-1-x",
			"5 replicaset-controller create pods/",
			"9 scheduler create pods.binding/web-1-y",
		}, []int{none, none, 1, 2}},
		"drift is reverted": {[]string{
			"0 alice create foos/web",
			"2 web-controller create deployments/web",
			"5000 bob patch deployments/web",
			"5010 web-controller update deployments/web",
		}, []int{none, 0, none, 2}},
		"a refused write has a cause and no effect": {[]string{
			"0 alice create foos/web",
			"5 x update foos.status/web 409",
			"9 web-controller create deployments/web 403",
			"12 deployment-controller create replicasets/web-1",
		}, []int{none, 0, 0, none}},
		"names with the same prefix": {[]string{
			"0 alice create foos/web",
			"10 bob create foos/web-2",
			"20 web-controller create deployments/web",
			"30 web-controller create deployments/web-2",
			"40 deployment-controller create replicasets/web-2-1",
			"50 deployment-controller create replicasets/web-1",
		}, []int{none, none, 0, 1, 3, 2}},
		"Pods that were there before": {[]string{
			"0 kubelet patch pods.status/old",
			"1 replicaset-controller create pods/b:",
			"2 replicaset-controller create pods/ 403",
			"3 replicaset-controller create pods/",
			"4 kubelet patch pods.status/old",
			"5 scheduler create pods.binding/new",
		}, []int{none, none, none, none, none, 3}},
		"another namespace": {[]string{
			"0 alice create foos/a:web", "5 web-controller create deployments/b:web",
		}, []int{none, none}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := causesIn(logOf(test.writes...)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOwnerReferencesTakePrecedenceOverNames(t *testing.T) {
	log := logOf("0 alice create foos/web", "1 alice create foos/other")
	for _, text := range []string{"10 web-controller create deployments/web", "20 web-controller create deployments/ 403"} {
		w := parseWrite(text)
		w.Request = ownedBy(foos.Resource.Group+"/v1alpha1", "Foo", "other")
		log.Add(w)
	}
	if got, want := causesIn(log), []int{none, none, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOwnersThatAreNotWritten finds the Foo by owner references alone, and survives a cycle.
func TestOwnersThatAreNotWritten(t *testing.T) {
	var log Log
	for text, owner := range map[string][3]string{
		"0 x update replicasets/any":   {"apps/v1", "Deployment", "one"},
		"1 x update deployments/one":   {foos.Resource.Group + "/v1alpha1", "Foo", "web"},
		"2 x update bars/ring":         {"example.com/v1", "Bar", "ring"},
		"3 x update replicasets/other": {"apps/v1", "Deployment", "two"},
	} {
		w := parseWrite(text)
		w.Response = ownedBy(owner[0], owner[1], owner[2])
		log.Add(w)
	}
	if got := of(t, &log, "default", "web"); len(entriesOf(got)) != 2 || got.Title != "The life of Foo web in default" {
		t.Errorf("%s: %d entries", got.Title, len(entriesOf(got)))
	}
}
