// SPDX-License-Identifier: Apache-2.0

// Tests of causes.

package timeline

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
)

// causesIn returns the index of each step's cause. It adds 100 if the cause is guessed.
func causesIn(steps []step) []int {
	var got []int
	for _, s := range steps {
		cause := s.cause
		if s.guessed {
			cause += 100
		}
		got = append(got, cause)
	}
	return got
}

func TestCauses(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []int
	}{
		"a new Foo": {[]string{
			"0 alice create foos/web",
			"5 web-controller create deployments/web",
			"9 web-controller update foos.status/web",
			"12 deployment-controller create replicasets/web-1",
			"15 deployment-controller update deployments.status/web",
			"20 replicaset-controller create pods/",
			"25 scheduler create pods.binding/web-1-x",
			"30 kubelet patch pods.status/web-1-x",
			"35 replicaset-controller update replicasets.status/web-1",
			"40 deployment-controller update deployments.status/web",
			"45 web-controller update foos.status/web",
		}, []int{none, 0, 0, 1, 1, 3, 5, 6, 7, 8, 9}},
		"a deletion by the garbage collector": {[]string{
			"0 alice delete foos/web",
			"5 gc delete deployments/web",
			"9 gc delete replicasets/web-1",
			"12 gc delete pods/web-1-x",
			"15 kubelet delete pods/web-1-x",
			"90000 gc delete pods/web-1-y",
		}, []int{none, 0, 1, 2, 3, 2}},
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
		"names without the owner's": {[]string{
			"0 alice create foos/a",
			"1 alice create foos/b",
			"10 web-controller create deployments/one",
			"20 web-controller create deployments/two",
			"30 deployment-controller update deployments.status/one",
			"40 web-controller update foos.status/a",
		}, []int{none, none, 100, 101, 2, 4}},
		"too late": {[]string{"0 alice create foos/web", "70000 web-controller create deployments/web"}, []int{none, none}},
		"another namespace": {[]string{
			"0 alice create foos/a:web", "5 web-controller create deployments/b:web",
		}, []int{none, none}},
		"a deleted namespace": {[]string{
			"0 alice delete namespaces/n:n", "5 namespace-controller deletecollection pods/n:", "9 kubelet delete pods/n:x",
		}, []int{none, 0, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := logOf(test.writes...)
			log.Add(parseWrite("0 web-controller create events/x"))
			if got := causesIn(log.steps()); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOwnerReferencesTakePrecedenceOverNames(t *testing.T) {
	var log Log
	for _, text := range []string{"0 alice create foos/web", "1 alice create foos/other", "10 web-controller create deployments/web"} {
		log.Add(parseWrite(text))
	}
	log.writes[2].Body = &audit.Body{Kind: "Deployment", Owners: []audit.Owner{{Kind: "Foo", Name: "other"}}}
	if got := causesIn(log.steps()); !slices.Equal(got, []int{none, none, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestGiveNames(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"by the order of bindings": {[]string{
			"0 x create pods/", "1 x create pods/", "2 kubelet patch pods.status/old",
			"3 scheduler create pods.binding/a", "4 scheduler create pods.binding/b",
		}, []string{"a", "b", "old", "a", "b"}},
		"a name that occurred before": {[]string{
			"0 kubelet patch pods.status/old", "1 x create pods/", "2 kubelet patch pods.status/old",
		}, []string{"old", "", "old"}},
		"no name from a deletion":         {[]string{"0 x create pods/", "1 gc delete pods/old"}, []string{"", "old"}},
		"no name from another namespace":  {[]string{"0 x create pods/", "1 scheduler create pods.binding/b:y"}, []string{"", "y"}},
		"a refused create":                {[]string{"0 x create pods/ 403", "1 scheduler create pods.binding/y"}, []string{"", "y"}},
		"without a scheduler, by updates": {[]string{"0 x create bars/", "1 x update bars.status/y"}, []string{"y", "y"}},
	}
	for name, test := range tests {
		var got []string
		for _, s := range logOf(test.writes...).steps() {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for resource, want := range map[string]string{
		"foos": "Foo", "pods": "Pod", "replicasets": "ReplicaSet", "networkpolicies": "NetworkPolicy", "ingresses": "Ingress",
		"endpoints": "Endpoints", "gateways": "Gateway", "gatewayclasses": "Gatewayclass", "proxies": "Proxy", "": "object",
	} {
		if got := kindOf(audit.Write{Resource: resource}); got != want {
			t.Errorf("%s: got %s, want %s", resource, got, want)
		}
	}
	if got := kindOf(audit.Write{Resource: "tlsroutes", Body: &audit.Body{Kind: "TLSRoute"}}); got != "TLSRoute" {
		t.Errorf("got %s, want the kind of the body", got)
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
	case "web-controller", "deployment-controller", "replicaset-controller", "namespace-controller", "x":
		return "system:serviceaccount:kube-system:" + name, name + "/v1"
	}
	return name, "kubectl/v1"
}

// parseWrite parses a write: the time at which it was received, in ms, the actor, the
// verb, the resource with its subresource and name, and the code if the server refused
// the write. Each write takes 2 ms.
func parseWrite(text string) audit.Write {
	fields := strings.Fields(text)
	ms, err := strconv.Atoi(fields[0])
	if err != nil || len(fields) < 4 {
		panic(fmt.Sprintf("%q: want MS USER VERB RESOURCE[.PART]/[NAMESPACE:]NAME [CODE]", text))
	}
	w := audit.Write{Verb: fields[2], Namespace: "default", Code: 200, Received: noon.Add(time.Duration(ms) * time.Millisecond)}
	w.User, w.Agent = users(fields[1])
	w.Done = w.Received.Add(2 * time.Millisecond)
	resource, name, _ := strings.Cut(fields[3], "/")
	w.Resource, w.Subresource, _ = strings.Cut(resource, ".")
	w.Name = name
	if namespace, name, ok := strings.Cut(name, ":"); ok {
		w.Namespace, w.Name = namespace, name
	}
	w.Group = map[string]string{"foos": "samplecontroller.k8s.io", "bars": "example.com", "deployments": "apps", "replicasets": "apps"}[w.Resource]
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

// lifeLog returns a recorded audit log of a Foo that is created, scaled to 3, and
// deleted. The log begins with the installation of the CustomResourceDefinition.
func lifeLog(t testing.TB) *Log {
	t.Helper()
	file, err := os.Open("testdata/life.log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var log Log
	if count, err := audit.Read(file, log.Add); err != nil || count.Bad > 0 || count.Cut {
		t.Fatalf("reading the log: %+v, %v", count, err)
	}
	return &log
}

// steps returns the log's steps, with their causes.
func (l *Log) steps() []step {
	steps := stepsOf(l.writes, l.acts)
	giveNames(steps)
	findCauses(steps, kinOf(steps))
	return steps
}

// entriesOf returns a picture's entries, each as one line.
func entriesOf(p *Picture) []string {
	lines := make([]string, 0, len(p.entries))
	for _, e := range p.entries {
		line := fmt.Sprintf("%s: %s %s %s %s", e.Panel, e.Milliseconds, e.Actor, e.Verb, e.Object)
		if e.Cause != "" {
			line += " < " + e.Cause
		}
		lines = append(lines, line)
	}
	return lines
}
