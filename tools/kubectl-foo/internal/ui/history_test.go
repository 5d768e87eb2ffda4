// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// event returns a line of an audit log: a write to the Foo blog, with the object in its
// response unless the condition is "".
func event(after time.Duration, verb, resource, user, condition string) string {
	object := ""
	if condition != "" {
		object = fmt.Sprintf(`,"responseObject":{"kind":"Foo","apiVersion":"samplecontroller.k8s.io/v1alpha1",`+
			`"metadata":{"name":"blog","namespace":%q,"uid":"uid-blog"},"status":{"conditions":[%s]}}`, footest.Namespace, condition)
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	at := noon.Add(after).Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete",`+
		`"requestURI":"/x","verb":%q,"user":{"username":%q},"userAgent":"%s/v1","objectRef":{"resource":%q,"subresource":%q,"namespace":%q,`+
		`"name":"blog","apiGroup":"samplecontroller.k8s.io"},"responseStatus":{"code":200},"requestReceivedTimestamp":%q,"stageTimestamp":%q%s}`+"\n",
		verb, user, user, resource, subresource, footest.Namespace, at, at, object)
}

func ready(status, reason string) string {
	return fmt.Sprintf(`{"type":"Ready","status":%q,"reason":%q,"message":"m"}`, status, reason)
}

// TestTheWatchMakesHistory checks the states that a watch sees.
func TestTheWatchMakesHistory(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	f.setMessage(t, "blog", metav1.ConditionFalse, "Broken", "it broke")
	f.setMessage(t, "blog", metav1.ConditionFalse, "Broken", "it broke")
	f.setMessage(t, "blog", metav1.ConditionTrue, "Available", "again")
	s := f.open(t, "blog")
	got := await(t, s, "detail", func(d *detailView) bool { return len(d.History.States) == 3 })
	var states []string
	for _, s := range got.History.States {
		states = append(states, fmt.Sprint(s.Since, " ", s.Status, " ", s.Reason, " ", s.Lasted))
	}
	// The first state is as old as its condition says.
	if want := "11:55:00 True Available 5m, 12:00:00 False Broken 0 ms, 12:00:00 True Available 0 ms"; strings.Join(states, ", ") != want {
		t.Errorf("the states are %q, want %q", strings.Join(states, ", "), want)
	}
}

// TestTheAuditLogMakesHistoryAndTimeline checks what is in the log at the start, what is
// added to it, and that a line that is not an event is reported.
func TestTheAuditLogMakesHistoryAndTimeline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		footest.Must(t, err)
		_, err = file.WriteString(text)
		footest.Must(t, err)
		footest.Must(t, file.Close())
	}
	write(event(-time.Minute, "create", "foos", "kubectl", ready("False", "Progressing")))
	f := newFixture(t, team()...).start(t, func(o *Options) { o.Audit = path })
	s := f.open(t, "blog")
	first := await(t, s, "detail", func(*detailView) bool { return true })
	if len(first.History.States) != 1 || first.Timeline.Version == "" || !strings.Contains(first.Timeline.Text, "create") {
		t.Errorf("at first it has %+v, %+v", first.History, first.Timeline)
	}
	write(event(-time.Second, "update", "foos/status", "sample-controller", ready("True", "Available")) + "not an event\n")
	second := await(t, s, "detail", func(d *detailView) bool { return len(d.History.States) == 2 })
	if second.Timeline.Version == first.Timeline.Version || !strings.Contains(second.Timeline.Text, "update") {
		t.Errorf("then it has %+v", second.Timeline)
	}
	if problems := f.live.list().Problems; len(problems) != 1 || !strings.Contains(problems[0], "the audit log: ") {
		t.Errorf("the problems are %q", problems)
	}
	got := f.get(t, "GET", "/timeline.svg?namespace="+footest.Namespace+"&name=blog", f.server.token, nil)
	if got.status != 200 || got.header.Get("Content-Security-Policy") != imagePolicy || !strings.HasPrefix(got.body, "<svg ") {
		t.Errorf("the picture: %+v", got)
	}
	if other := f.live.detail(named("wiki")).Timeline; !strings.Contains(other.Problem, "The audit log has nothing about it") {
		t.Errorf("of another Foo there is %+v", other)
	}
}

// TestHistoryIsLimited checks that a Foo that changes all the time does not fill the memory.
func TestHistoryIsLimited(t *testing.T) {
	var states []state
	for i := range 3 * maxStates {
		states = added(states, state{reason: fmt.Sprint(i)})
	}
	if len(states) != maxStates || states[maxStates-1].reason != fmt.Sprint(3*maxStates-1) {
		t.Errorf("there are %d states, the last is %+v", len(states), states[len(states)-1])
	}
}
