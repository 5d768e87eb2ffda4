// SPDX-License-Identifier: Apache-2.0

// Tests of the description of a write.

package main

import (
	"testing"

	"example.com/sample-controller/internal/audit"
)

// Objects as in the log, without the fields that the demo does not read.
const (
	oneReplica     = `{"metadata":{"resourceVersion":"7"},"spec":{"replicas":1}}`
	threeReplicas  = `{"metadata":{"resourceVersion":"8"},"spec":{"replicas":3}}`
	aPod           = `{"spec":{"containers":[{}]},"status":{"phase":"Pending"}}`
	terminatingPod = `{"metadata":{"deletionTimestamp":"2026-01-01T12:00:30Z","deletionGracePeriodSeconds":30},"spec":{"containers":[{}]},"status":{"phase":"Pending"}}`
	endedPod       = `{"metadata":{"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":0},"spec":{"containers":[{}]}}`
	readyPod       = `{"spec":{"nodeName":"node-1","containers":[{}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	waitingFoo     = `{"metadata":{"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["foregroundDeletion"]},"spec":{"replicas":1}}`
	success        = `{"kind":"Status","status":"Success"}`
)

// condition returns a Foo with the condition Ready.
func condition(status, reason, message string) string {
	return `{"spec":{"replicas":2},"status":{"availableReplicas":0,"conditions":[{"type":"Ready","status":"` + status +
		`","reason":"` + reason + `","message":"` + message + `"}]}}`
}

func TestDescribe(t *testing.T) {
	binding := edited(write("create pods/binding", success), func(w *audit.Write) { w.Request = object(`{"target":{"name":"node-1"}}`) })
	applied := edited(write("patch foos", oneReplica), func(w *audit.Write) { w.Code = 201 })
	tests := map[string]struct {
		before    string
		write     audit.Write
		did, note string
	}{
		"a Foo is created":                     {"", write("create foos", threeReplicas), "created", "3 replicas"},
		"a Foo is created by apply":            {"", applied, "created", "1 replica"},
		"a Foo without replicas is created":    {"", write("create foos", `{"spec":{}}`), "created", ""},
		"a Deployment is created for a Foo":    {"", write("create deployments", `{"metadata":{"ownerReferences":[{"kind":"Foo","controller":true}]},"spec":{"replicas":1}}`), "created", "owner Foo, 1 replica"},
		"an object takes a deleted one's name": {terminatingPod, write("create pods", aPod), "created", ""},

		"a Foo is deleted at once":                {oneReplica, write("delete foos", success), "deleted", ""},
		"a Pod is deleted, with time to end":      {aPod, write("delete pods", terminatingPod), "deleted", "has 30 s to end"},
		"a Pod is deleted without time":           {aPod, write("delete pods", endedPod), "deleted", ""},
		"a Pod is evicted":                        {aPod, write("create pods/eviction", success), "deleted", ""},
		"a Foo is deleted, with a finalizer":      {oneReplica, write("delete foos", waitingFoo), "deleted", "waits for foregroundDeletion"},
		"a Foo with a finalizer is deleted again": {waitingFoo, write("delete foos", waitingFoo), "", ""},
		"a Pod that is ending is deleted again":   {terminatingPod, write("delete pods", terminatingPod), "", ""},
		"a Pod that was deleted has ended":        {terminatingPod, write("delete pods", endedPod), "removed", ""},
		"a Pod that is ending reports":            {terminatingPod, write("patch pods/status", terminatingPod), "", ""},
		"the last finalizer is removed": {waitingFoo, write("patch foos",
			`{"kind":"PartialObjectMetadata","metadata":{"deletionTimestamp":"2026-01-01T12:00:00Z","deletionGracePeriodSeconds":0}}`), "removed", ""},

		"a Pod is bound":                      {aPod, binding, "bound", "to node-1"},
		"a Foo is scaled by kubectl scale":    {oneReplica, write("patch foos/scale", `{"kind":"Scale","spec":{"replicas":3}}`), "scaled", "replicas 1 -> 3"},
		"a ReplicaSet is scaled":              {oneReplica, write("update replicasets", threeReplicas), "scaled", "replicas 1 -> 3"},
		"a Foo leaves its replicas to others": {oneReplica, write("update foos", `{"spec":{}}`), "scaled", "replicas 1 -> unset"},
		"a Foo names another Deployment":      {`{"spec":{"deploymentName":"a"}}`, write("patch foos", `{"spec":{"deploymentName":"b"}}`), "changed", "deploymentName a -> b"},
		"a Deployment gets another image and is scaled": {`{"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"nginx:latest"}]}}}}`,
			write("update deployments", `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"image":"nginx:1"}]}}}}`),
			"changed", "replicas 1 -> 2, image nginx:latest -> nginx:1"},
		"many fields change":                            {`{"spec":{"a":1,"b":true,"c":["x"]}}`, write("update deployments", `{"spec":{"c":["y","z"],"d":"w"}}`), "changed", "a 1 -> unset, b true -> unset, c[0] x -> y, and 2 more"},
		"labels and annotations change":                 {oneReplica, write("patch foos", `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"replicas":1}}`), "changed", "labels, annotations"},
		"kubectl's own annotation changes":              {oneReplica, write("patch foos", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"replicas":1}}`), "", ""},
		"the deployment controller's own annotation":    {oneReplica, write("update deployments", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"2"}},"spec":{"replicas":1}}`), "", ""},
		"the garbage collector orphans a ReplicaSet":    {`{"metadata":{"ownerReferences":[{"kind":"Deployment"}]},"spec":{"replicas":1}}`, write("patch replicasets", `{"kind":"PartialObjectMetadata"}`), "changed", "owners"},
		"something that no reader need know is written": {oneReplica, write("update foos", `{"metadata":{"resourceVersion":"9"},"spec":{"replicas":1}}`), "", ""},

		"a Pod becomes Ready":                        {`{"spec":{"nodeName":"node-1","containers":[{}]}}`, write("patch pods/status", readyPod), "reported", "Ready"},
		"a Pod is Ready no more":                     {readyPod, write("patch pods/status", `{"spec":{"nodeName":"node-1","containers":[{}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]}}`), "reported", "Running, ContainersNotReady"},
		"a Pod has failed":                           {aPod, write("patch pods/status", `{"spec":{"containers":[{}]},"status":{"phase":"Failed"}}`), "reported", "Failed"},
		"a Deployment reports an available Pod":      {oneReplica, write("update deployments/status", `{"spec":{"replicas":1},"status":{"availableReplicas":1}}`), "reported", "1/1 available"},
		"a Deployment counts something else":         {oneReplica, write("update deployments/status", `{"spec":{"replicas":1},"status":{"unavailableReplicas":1}}`), "", ""},
		"a Foo without replicas reports":             {`{"spec":{}}`, write("update foos/status", `{"spec":{},"status":{"availableReplicas":4}}`), "reported", "4 available"},
		"a Foo reports progress":                     {`{"spec":{"replicas":2}}`, write("update foos/status", condition("False", "Progressing", "m")), "reported", "0/2 available, Progressing"},
		"a Foo reports that it is ready":             {`{"spec":{"replicas":2}}`, write("update foos/status", condition("True", "Available", "m")), "reported", "0/2 available, Ready"},
		"a Foo reports what the user has to do":      {`{"spec":{"replicas":2}}`, write("update foos/status", condition("False", "DeploymentConflict", "do this")), "reported", "0/2 available, DeploymentConflict: do this"},
		"a Foo's condition changes its message only": {condition("False", "Progressing", "a"), write("update foos/status", condition("False", "Progressing", "b")), "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := narrator{objects: map[key]audit.Object{}}
			if before := object(test.before); before != nil {
				n.objects[key{test.write.Resource, "default", "web"}] = *before
			}
			if got, _ := n.lineOf(test.write); got.did != test.did || got.note != test.note {
				t.Errorf("got %q, %q; want %q, %q", got.did, got.note, test.did, test.note)
			}
		})
	}
}

// If a response does not contain the object, the demo uses the object before the write.
func TestResponsesWithoutTheObject(t *testing.T) {
	n := narrator{resources: narrated}
	tell := func(w audit.Write, want string) {
		t.Helper()
		if l, _ := n.lineOf(w); l.did+" "+l.note != want {
			t.Errorf("%s %s: got %q, want %q", w.Verb, w.Path(), l.did+" "+l.note, want)
		}
	}
	tell(write("create foos", `{"spec":{"deploymentName":"web","replicas":1}}`), "created 1 replica")
	tell(write("patch foos/scale", `{"kind":"Scale","spec":{"replicas":3}}`), "scaled replicas 1 -> 3")
	tell(write("update foos/status", `{"spec":{"deploymentName":"web","replicas":3},"status":{"availableReplicas":1}}`), "reported 1/3 available")

	tell(write("create pods", aPod), "created ")
	tell(edited(write("create pods/binding", success), func(w *audit.Write) { w.Request = object(`{"target":{"name":"node-1"}}`) }), "bound to node-1")
	tell(write("patch pods/status", readyPod), "reported Ready")
	tell(write("create pods/eviction", success), "deleted ")
	tell(write("patch pods/status", `{"metadata":{"deletionTimestamp":"2026-01-01T12:00:30Z"},`+readyPod[1:]), " ")
	tell(write("delete pods", endedPod), "removed ")
}
