// SPDX-License-Identifier: Apache-2.0

// Tests of the reader and of the actors.

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
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
	half, status := day(15, 500000000), day(15, 751945000)
	tests := map[string]struct {
		line string
		want *Write
	}{
		"a create, with the field manager that the client chose": {createFooLine, &Write{
			Verb: "create", Group: "samplecontroller.k8s.io", Resource: "foos", Namespace: "default", Name: "example-foo", User: "devcluster-admin",
			Agent: "kubectl/v1.37.0 (linux/amd64) kubernetes/unknown", Manager: "kubectl-client-side-apply", Code: 201,
			Received: half, Done: day(15, 506749000),
		}},
		"an update of a subresource": {updateStatusLine, &Write{
			Verb: "update", Resource: "replicasets", Subresource: "status", Namespace: "default", Name: "web-1",
			User: "system:serviceaccount:kube-system:replicaset-controller", Agent: "kube-controller-manager/v1.37.0 (linux/amd64)",
			Manager: "kube-controller-manager", Code: 200, Done: status,
		}},
		"a create, with bodies": {createPodLine, &Write{
			Verb: "create", Resource: "pods", Namespace: "default", Name: "web-1-x", User: "u", Code: 201, Done: half,
			Request: &Object{Kind: "Pod", Metadata: metav1.ObjectMeta{
				GenerateName: "web-1-", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "7"}},
			}},
			Response: &Object{
				Kind: "Pod", Metadata: metav1.ObjectMeta{Name: "web-1-x", GenerateName: "web-1-", UID: "8", ResourceVersion: "9"},
				Spec: map[string]any{"nodeName": "n"}, Status: Status{Phase: "Pending"},
			},
		}},
		"a JSON patch, and a status of another form": {
			eventLine(`"requestObject":[{"op":"add"}],"responseObject":{"kind":"Bar","status":{"conditions":"none"}}`),
			&Write{Verb: "update", Resource: "r", Done: half, Response: &Object{Kind: "Bar"}},
		},
		"a conflict, of an impersonated user": {
			eventLine(`"user":{"username":"a"},"impersonatedUser":{"username":"b"},"responseStatus":{"code":409,"reason":"Conflict"}`),
			&Write{Verb: "update", Resource: "r", Done: half, User: "b", Code: 409},
		},
		"a dry run":       {strings.Replace(eventLine(`"user":{}`), "/a", "/a?dryRun=All", 1), nil},
		"no response yet": {`{"stage":"RequestReceived","requestURI":"/a","verb":"update","objectRef":{}}`, nil},
		"a read":          {`{"stage":"ResponseComplete","requestURI":"/a","verb":"list","objectRef":{}}`, nil},
	}
	for name, test := range tests {
		got, err := parse([]byte(test.line))
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, test.want)
		}
	}
	for _, line := range []string{"", "{", `"text"`, "7", "{}", `{"level":"info","msg":"no audit event"}`,
		`{"stage":"ResponseComplete","requestURI":"/a","verb":"update","objectRef":{}}`} {
		if got, err := parse([]byte(line)); err == nil {
			t.Errorf("%s: no error, but %+v", line, got)
		}
	}
}

// TestActorOf has what the recorded log of tools/internal/timeline does not show.
func TestActorOf(t *testing.T) {
	const account = "system:serviceaccount:"
	const kubectl, manager = "kubectl/v1.37.0 (linux/amd64)", "kube-controller-manager/v1.37.0 (linux/amd64) kubernetes/1/"
	tests := map[string]struct {
		user, agent string
		want        Actor
	}{
		"a person's program":            {"alice", "sample-controller/v0.0.0 (linux/amd64)", Actor{"sample-controller", false, false}},
		"a user without a program":      {"alice", "", Actor{"alice", false, true}},
		"a service account's kubectl":   {account + "ci:deployer", kubectl, Actor{"deployer", false, true}},
		"a controller without account":  {"system:kube-controller-manager", manager + account + "kube-system:job-controller", Actor{"job-controller", true, false}},
		"the controller manager itself": {"system:kube-controller-manager", manager + "leader-election", Actor{"kube-controller-manager", true, false}},
		"a node":                        {"system:node:n1", "kubelet/v1.37.0", Actor{"kubelet", true, false}},
		"an administrator":              {"system:admin", kubectl, Actor{"admin", false, true}},
		"nobody":                        {"", "", Actor{"unknown", false, false}},
	}
	for name, test := range tests {
		if got := ActorOf(Write{User: test.user, Agent: test.agent}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	foo, status := createFooLine, updateStatusLine
	skipped := func(bad, lines int) string {
		return fmt.Sprintf("standard input: skipped %d of %d lines, which are not audit events, or incomplete\n", bad, lines)
	}
	tests := map[string]struct {
		log       string
		writes    int
		says, err string
	}{
		"empty lines":               {"\n \r\n\n", 0, "", "standard input is empty"},
		"no newline at the end":     {foo + "\n\n" + status, 2, "", ""},
		"something else in between": {foo + "\nI1121 23:15:15.380081 14258 main.go:94] Hello\n{}\r\n" + status + "\n", 2, skipped(2, 4), ""},
		"cut at both ends":          {foo[99:] + "\n" + status + "\n" + foo[:99], 1, skipped(2, 3), ""},
		"binary data":               {"\x00\xff\x1f\n\x1f", 0, "", "standard input is not an audit log"},
		"a line of 5 MiB":           {eventLine(`"requestObject":{"data":"`+strings.Repeat("x", 5<<20)+`"}`) + "\n" + foo + "\n", 2, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			var messages strings.Builder
			// A pipe may return less than a read asks for.
			err := ReadFile("-", iotest.HalfReader(strings.NewReader(test.log)), func(Write) { writes++ }, &messages)
			if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			if writes != test.writes || messages.String() != test.says {
				t.Errorf("got %d writes and %q, want %d and %q", writes, messages.String(), test.writes, test.says)
			}
		})
	}
	broken := errors.New("broken")
	if err := ReadFile("-", iotest.ErrReader(broken), func(Write) {}, io.Discard); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestLogFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendTo := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		footest.Must(t, err)
		_, err = file.WriteString(text)
		footest.Must(t, errors.Join(err, file.Close()))
	}
	next := func(log *Log) []Write {
		t.Helper()
		writes, err := log.Next()
		footest.Must(t, err)
		return writes
	}
	created, refused := createFooLine+"\n", strings.Replace(updateStatusLine, "200", "409", 1)+"\n"
	appendTo(refused)
	log, err := OpenAtEnd(path)
	footest.Must(t, err)
	half := len(created) / 2
	appendTo(refused + created[:half])
	if got := next(log); len(got) != 1 || got[0].Path() != "replicasets/status" || got[0].OK() {
		t.Errorf("got %+v, want only the refused update of a status: the first was there before, the last line is incomplete", got)
	}
	appendTo(created[half:] + refused)
	for _, name := range []string{"audit-2026-01-01.log", "audit-2026-01-02.log"} {
		footest.Must(t, os.Rename(path, filepath.Join(filepath.Dir(path), name)))
		appendTo(created)
	}
	if got := next(log); len(got) != 4 || !got[0].OK() || got[1].OK() || !got[2].OK() || !got[3].OK() {
		t.Errorf("after two rotations: %+v, want two writes of the first file and one of each other", got)
	}
	if got := next(log); len(got) != 0 {
		t.Errorf("again: %+v, want nothing", got)
	}
}
