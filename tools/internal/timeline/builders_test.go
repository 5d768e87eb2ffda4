// SPDX-License-Identifier: Apache-2.0

// Builders of writes for the tests.

package timeline

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
)

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
