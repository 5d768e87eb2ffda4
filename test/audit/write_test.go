// SPDX-License-Identifier: Apache-2.0

// Tests of Parse, of the reader, of the notes and of the actors.

package audit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
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

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	foo, status := createFooLine, updateStatusLine
	read := strings.ReplaceAll(foo, `"create"`, `"get"`)
	long := func(size int) string {
		return `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{},"stageTimestamp":"2026-11-21T11:23:15.5Z",` +
			`"requestObject":{"data":"` + strings.Repeat("x", size) + `"}}`
	}
	whole := packed(t, strings.Repeat(foo+"\n", 3))
	tests := map[string]struct {
		log    string
		want   Count
		writes int
	}{
		"nothing":                    {"", Count{}, 0},
		"empty lines":                {"\n \r\n\n", Count{}, 0},
		"two writes and a read":      {foo + "\n" + read + "\r\n" + status + "\n", Count{Lines: 3, Good: 3}, 2},
		"no newline at the end":      {foo + "\n" + status, Count{Lines: 2, Good: 2}, 2},
		"cut at the end":             {foo + "\n" + status[:99], Count{Lines: 2, Good: 1, Cut: true}, 1},
		"cut at the beginning":       {foo[99:] + "\n" + status + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"something else in between":  {foo + "\nI1121 23:15:15.380081 14258 main.go:94] Hello\n{}\n" + status + "\n", Count{Lines: 4, Good: 2, Bad: 2}, 2},
		"two lines joined":           {foo + status + "\n" + status + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"binary data":                {"\x00\xff\x1f\n\x1f", Count{Lines: 2, Bad: 1, Cut: true}, 0},
		"a line of 5 MiB":            {long(5<<20) + "\n" + foo + "\n", Count{Lines: 2, Good: 2}, 2},
		"a line that is too long":    {long(32<<20) + "\n" + foo + "\n", Count{Lines: 2, Good: 1, Bad: 1}, 1},
		"compressed":                 {packed(t, foo+"\n"+status+"\n"), Count{Lines: 2, Good: 2}, 2},
		"compressed, cut at the end": {whole[:len(whole)-8], Count{Lines: 3, Good: 3, Cut: true}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			// A pipe may return less than a read asks for.
			got, err := Read(iotest.HalfReader(strings.NewReader(test.log)), func(Write) { writes++ })
			if err != nil || got != test.want || writes != test.writes {
				t.Errorf("got %+v with %d writes, %v; want %+v with %d", got, writes, err, test.want, test.writes)
			}
		})
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), func(Write) {}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// lines is a reader that returns a line several times.
type lines struct {
	line string
	left int
	rest string
}

func (l *lines) Read(p []byte) (int, error) {
	if l.rest == "" {
		if l.left == 0 {
			return 0, io.EOF
		}
		l.left--
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func TestReadDoesNotRetainLines(t *testing.T) {
	line := strings.Replace(updateStatusLine, `"stage":`, `"requestObject":{"x":"`+strings.Repeat("x", 200<<10)+`"},"stage":`, 1) + "\n"
	writes := make([]Write, 0, 200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	count, err := Read(&lines{line: line, left: cap(writes)}, func(w Write) { writes = append(writes, w) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || count.Good != cap(writes) || len(writes) != cap(writes) {
		t.Fatalf("got %+v, %v", count, err)
	}
	if grown, whole := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(len(line)*cap(writes)); grown > whole/10 {
		t.Errorf("%d bytes are retained of a log of %d", grown, whole)
	}
	runtime.KeepAlive(writes)
}

const (
	created = `{"stage":"ResponseComplete","requestURI":"/a","verb":"create","user":{"username":"a"},"objectRef":{"resource":"configmaps","namespace":"n","name":"d"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.000100Z","stageTimestamp":"2026-01-02T03:04:05.001200Z"}` + "\n"
	refused = `{"stage":"ResponseComplete","requestURI":"/a","verb":"update","user":{"username":"b"},"objectRef":{"resource":"foos","subresource":"status"},` +
		`"responseStatus":{"code":409},"stageTimestamp":"2026-01-02T03:04:05Z"}` + "\n"
	begun = `{"stage":"ResponseStarted","requestURI":"/a","verb":"create","objectRef":{"resource":"configmaps"}}` + "\n"
)

func TestLogFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendTo := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	next := func(log *Log) []Write {
		t.Helper()
		writes, err := log.Next()
		if err != nil {
			t.Fatal(err)
		}
		return writes
	}
	appendTo(refused)
	log, err := OpenAtEnd(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := next(log); len(got) != 0 {
		t.Errorf("after opening at the end: %v, want nothing", got)
	}

	half := len(created) / 2
	appendTo(begun + refused + created[:half])
	got := next(log)
	if len(got) != 1 || got[0].Path() != "foos/status" || got[0].OK() || got[0].User != "b" {
		t.Errorf("got %+v, want only the refused update of a status: the first line is of a request that has no response yet, the last is incomplete", got)
	}

	appendTo(created[half:])
	got = next(log)
	if len(got) != 1 || !got[0].OK() || got[0].Done.Sub(got[0].Received) != 1100*time.Microsecond || got[0].Name != "d" {
		t.Errorf("got %+v, want the creation of n/d, which took 1.1 ms", got)
	}

	appendTo(refused)
	for _, name := range []string{"audit-2026-01-01.log", "audit-2026-01-02.log"} {
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Fatal(err)
		}
		appendTo(created)
	}
	if got := next(log); len(got) != 3 || got[0].OK() || !got[1].OK() || !got[2].OK() {
		t.Errorf("after two rotations: %+v, want one write of each file", got)
	}
	if got := next(log); len(got) != 0 {
		t.Errorf("again: %+v, want nothing", got)
	}
}
