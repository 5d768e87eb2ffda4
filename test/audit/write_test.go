// SPDX-License-Identifier: Apache-2.0

// Tests of Parse, of the notes and of the actors.

package audit

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lines as kube-apiserver writes them, without the fields that Parse does not read.
const (
	createFooLine = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",` +
		`"requestURI":"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos?fieldManager=kubectl-client-side-apply\u0026fieldValidation=Strict",` +
		`"verb":"create","user":{"username":"devcluster-admin","groups":["system:masters"]},"userAgent":"kubectl/v1.37.0 (linux/amd64) kubernetes/unknown",` +
		`"objectRef":{"resource":"foos","namespace":"default","name":"example-foo","apiGroup":"samplecontroller.k8s.io","apiVersion":"v1alpha1"},` +
		`"responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-11-21T11:23:15.5Z","stageTimestamp":"2026-11-21T11:23:15.506749Z"}`
	updateStatusLine = `{"stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/default/replicasets/web-1/status","verb":"update",` +
		`"user":{"username":"system:serviceaccount:kube-system:replicaset-controller"},"userAgent":"kube-controller-manager/v1.37.0 (linux/amd64)",` +
		`"objectRef":{"resource":"replicasets","namespace":"default","name":"web-1","resourceVersion":"291","subresource":"status"},` +
		`"responseStatus":{"code":200},"stageTimestamp":"2026-11-21T11:23:15.751945Z"}`
	createPodLine = `{"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/pods","verb":"create","user":{"username":"u"},` +
		`"objectRef":{"resource":"pods","namespace":"default"},"responseStatus":{"code":201},"stageTimestamp":"2026-11-21T11:23:15.5Z",` +
		`"requestObject":{"kind":"Pod","metadata":{"generateName":"web-1-","ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"7"}]}},` +
		`"responseObject":{"kind":"Pod","metadata":{"name":"web-1-x","generateName":"web-1-","uid":"8","resourceVersion":"9"},` +
		`"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}}`
)

// eventLine returns a line with the required fields and some others.
func eventLine(fields string) string {
	return `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{"resource":"r"},"stageTimestamp":"2026-11-21T11:23:15.5Z",` +
		fields + `}`
}

func day(seconds, nanoseconds int) time.Time {
	return time.Date(2026, 11, 21, 11, 23, seconds, nanoseconds, time.UTC)
}

func TestParse(t *testing.T) {
	half := day(15, 500000000)
	status := day(15, 751945000)
	bare := Write{Verb: "update", Resource: "r", Received: half, Done: half}
	with := func(edit func(*Write)) []Write {
		w := bare
		edit(&w)
		return []Write{w}
	}
	tests := map[string]struct {
		line string
		want []Write
	}{
		"a create, with the field manager that the client chose": {createFooLine, []Write{{
			Verb: "create", Group: "samplecontroller.k8s.io", Resource: "foos", Namespace: "default", Name: "example-foo", User: "devcluster-admin",
			Agent: "kubectl/v1.37.0 (linux/amd64) kubernetes/unknown", Manager: "kubectl-client-side-apply", Code: 201,
			Received: half, Done: day(15, 506749000),
		}}},
		"an update of a subresource, with the version that it replaces": {updateStatusLine, []Write{{
			Verb: "update", Resource: "replicasets", Subresource: "status", Namespace: "default", Name: "web-1", Replaces: "291",
			User: "system:serviceaccount:kube-system:replicaset-controller", Agent: "kube-controller-manager/v1.37.0 (linux/amd64)",
			Manager: "kube-controller-manager", Code: 200, Received: status, Done: status,
		}}},
		"a create, with bodies": {createPodLine, []Write{{
			Verb: "create", Resource: "pods", Namespace: "default", Name: "web-1-x", User: "u", Code: 201, Received: half, Done: half,
			Request: &Object{Kind: "Pod", Metadata: metav1.ObjectMeta{
				GenerateName: "web-1-", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "7"}},
			}},
			Response: &Object{
				Kind: "Pod", Metadata: metav1.ObjectMeta{Name: "web-1-x", GenerateName: "web-1-", UID: "8", ResourceVersion: "9"},
				Spec: map[string]any{"nodeName": "n"}, Status: Status{Phase: "Pending"},
			},
			Body: &Body{Kind: "Pod", Name: "web-1-x", GenerateName: "web-1-", UID: "8", Owners: []Owner{{"ReplicaSet", "web-1", "7"}}},
		}}},
		"a patch that scales, with the version that it replaces": {`{"stage":"ResponseComplete","requestURI":"/a","verb":"patch","objectRef":{"resource":"deployments","name":"web"},` +
			`"requestObject":{"metadata":{"resourceVersion":"7","uid":"8"},"spec":{"replicas":3}},"stageTimestamp":"2026-11-21T11:23:15.5Z"}`, []Write{{
			Verb: "patch", Resource: "deployments", Name: "web", Replaces: "7", Received: half, Done: half,
			Request: &Object{Metadata: metav1.ObjectMeta{ResourceVersion: "7", UID: "8"}, Spec: map[string]any{"replicas": 3.0}},
			Body:    &Body{UID: "8", Note: "replicas 3"},
		}}},
		"a conflict": {eventLine(`"responseStatus":{"code":409,"reason":"Conflict"}`), with(func(w *Write) { w.Code, w.Reason = 409, "Conflict" })},
		"an impersonated user": {eventLine(`"user":{"username":"a"},"impersonatedUser":{"username":"b"},"responseStatus":{"code":200}`),
			with(func(w *Write) { w.User, w.Code = "b", 200 })},
		"a handler that panicked": {`{"stage":"Panic","requestURI":"/a","verb":"update","objectRef":{"resource":"r"},"stageTimestamp":"2026-11-21T11:23:15.5Z"}`,
			with(func(w *Write) { w.Code = 500 })},
		"several events, as a webhook receives them": {`{"kind":"EventList","items":[` + eventLine(`"responseStatus":{"code":1}`) + "," +
			eventLine(`"responseStatus":{"code":2}`) + `]}`, append(with(func(w *Write) { w.Code = 1 }), with(func(w *Write) { w.Code = 2 })...)},
		"a dry run":       {`{"stage":"ResponseComplete","requestURI":"/a?dryRun=All","verb":"update","objectRef":{},"responseStatus":{"code":200}}`, nil},
		"no response yet": {`{"stage":"RequestReceived","requestURI":"/a","verb":"update","objectRef":{}}`, nil},
		"a read":          {`{"stage":"ResponseComplete","requestURI":"/a","verb":"list","objectRef":{}}`, nil},
		"no object":       {`{"stage":"ResponseComplete","requestURI":"/a","verb":"create"}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.line))
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
	for _, line := range []string{"", "{", `"text"`, "7", "{}", `{"level":"info","msg":"no audit event"}`,
		`{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{}}`, `{"kind":"EventList","items":[{}]}`} {
		if got, err := Parse([]byte(line)); err == nil {
			t.Errorf("%s: no error, but %+v", line, got)
		}
	}
}

// withBodies returns a write, such as "update foos/status", with its bodies.
func withBodies(what, request, response string) Write {
	w := Write{Request: objectOf([]byte(request)), Response: objectOf([]byte(response))}
	w.Verb, w.Resource, _ = strings.Cut(what, " ")
	w.Resource, w.Subresource, _ = strings.Cut(w.Resource, "/")
	return w
}

func TestNoteOf(t *testing.T) {
	tests := map[string]struct{ write, request, response, want string }{
		"a Foo that is ready":        {"update foos/status", ``, `{"kind":"Foo","spec":{"replicas":3},"status":{"availableReplicas":3,"conditions":[{"type":"Ready","status":"True"}]}}`, "3/3 available, Ready"},
		"a Foo that is not ready":    {"update foos/status", ``, `{"kind":"Foo","spec":{"replicas":3},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Progressing"}]}}`, "0/3 available, Progressing"},
		"a Foo without replicas":     {"update foos/status", ``, `{"kind":"Foo","spec":{},"status":{"availableReplicas":3}}`, "3 available"},
		"an object without replicas": {"update bars/status", ``, `{"kind":"Bar"}`, ""},
		"a status of another form":   {"update bars/status", ``, `{"kind":"Bar","spec":{"replicas":2},"status":{"conditions":"none"}}`, "0/2 available"},
		"a Pod that is ready":        {"patch pods/status", `[{"op":"add"}]`, `{"kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, "Ready"},
		"a Pod that is not ready":    {"patch pods/status", `[{"op":"add"}]`, `{"kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]}}`, "Running, ContainersNotReady"},
		"a rejected status":          {"update pods/status", `{"kind":"Pod","status":{"phase":"Failed"}}`, `{"kind":"Status","status":"Failure"}`, "Failed"},
		"a new ReplicaSet":           {"create replicasets", `{"kind":"ReplicaSet","spec":{"replicas":1}}`, ``, "replicas 1"},
		"a change of a ReplicaSet":   {"update replicasets", ``, `{"kind":"ReplicaSet","spec":{"replicas":2},"status":{"availableReplicas":1}}`, "replicas 2"},
		"a scale":                    {"patch foos/scale", `{"spec":{"replicas":3}}`, `{"kind":"Scale","spec":{"replicas":3},"status":{"replicas":1}}`, "replicas 3"},
		"a binding":                  {"create pods/binding", `{"kind":"Binding","target":{"name":"node-1"}}`, `{"kind":"Status","status":"Success"}`, "to node-1"},
		"a deletion":                 {"delete replicasets", ``, `{"kind":"ReplicaSet","spec":{"replicas":2}}`, ""},
	}
	for name, test := range tests {
		if body := bodyOf(withBodies(test.write, test.request, test.response)); body == nil || body.Note != test.want {
			t.Errorf("%s: got %+v, want %q", name, body, test.want)
		}
	}
	if body := bodyOf(Write{}); body != nil {
		t.Errorf("without bodies: got %+v, want nil", body)
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]struct{ request, response, want string }{
		"an object":             {`{"kind":"Foo"}`, `{"kind":"Foo"}`, "Foo"},
		"a patch":               {`{"spec":{}}`, `{"kind":"Foo"}`, "Foo"},
		"a rejected write":      {`{"kind":"Foo"}`, `{"kind":"Status"}`, "Foo"},
		"a scale":               {`{"spec":{"replicas":1}}`, `{"kind":"Scale"}`, ""},
		"metadata only":         {`{"kind":"DeleteOptions"}`, `{"kind":"PartialObjectMetadata"}`, ""},
		"a list, of a deletion": {``, `{"kind":"FooList","items":[]}`, "Foo"},
		"a kind in -List":       {``, `{"kind":"FooList"}`, "FooList"},
	}
	for name, test := range tests {
		if body := bodyOf(withBodies("update foos", test.request, test.response)); body == nil || body.Kind != test.want {
			t.Errorf("%s: got %+v, want %q", name, body, test.want)
		}
	}
}

func TestActorOf(t *testing.T) {
	const account = "system:serviceaccount:"
	const kubectl, manager = "kubectl/v1.37.0 (linux/amd64)", "kube-controller-manager/v1.37.0 (linux/amd64) kubernetes/1/"
	tests := map[string]struct {
		user, agent string
		want        Actor
	}{
		"a person":                      {"alice", kubectl, Actor{"alice", "alice", false, true}},
		"a person's program":            {"alice", "sample-controller/v0.0.0 (linux/amd64)", Actor{"sample-controller", "sample-controller (alice)", false, false}},
		"a user without a program":      {"alice", "", Actor{"alice", "alice", false, true}},
		"a controller":                  {account + "kube-system:replicaset-controller", manager, Actor{"replicaset-controller", "kube-system/replicaset-controller", true, false}},
		"the garbage collector":         {account + "kube-system:generic-garbage-collector", manager, Actor{"garbage-collector", "kube-system/garbage-collector", true, false}},
		"a service account's kubectl":   {account + "ci:deployer", kubectl, Actor{"deployer", "ci/deployer (kubectl)", false, true}},
		"a controller without account":  {"system:kube-controller-manager", manager + account + "kube-system:job-controller", Actor{"job-controller", "kube-system/job-controller", true, false}},
		"the controller manager itself": {"system:kube-controller-manager", manager + "leader-election", Actor{"kube-controller-manager", "system:kube-controller-manager", true, false}},
		"the scheduler":                 {"system:kube-scheduler", "kube-scheduler/v1.37.0", Actor{"kube-scheduler", "system:kube-scheduler", true, false}},
		"a node":                        {"system:node:n1", "kubelet/v1.37.0", Actor{"kubelet", "system:node", true, false}},
		"kwok":                          {"kwok", "kwok/v0.8.0", Actor{"kwok (as kubelet)", "kwok", true, false}},
		"an administrator":              {"system:admin", kubectl, Actor{"admin", "system:admin (kubectl)", false, true}},
		"nobody":                        {"", "", Actor{"unknown", "no user", false, false}},
	}
	for name, test := range tests {
		if got := ActorOf(Write{User: test.user, Agent: test.agent}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
