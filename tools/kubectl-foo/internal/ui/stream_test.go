// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// stream is an open stream of events.
type stream struct {
	*bufio.Scanner
	body io.Closer
}

// open opens the stream of a Foo, or of none.
func (f *fixture) open(t *testing.T, name string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	query := url.Values{"token": {f.server.token}}
	if name != "" {
		query.Set("namespace", footest.Namespace)
		query.Set("name", name)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.server.address+"/events?"+query.Encode(), http.NoBody)
	footest.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	footest.Must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("status %d, %s", response.StatusCode, kind)
	}
	s := &stream{bufio.NewScanner(response.Body), response.Body}
	s.Buffer(nil, 1<<20)
	return s
}

// await reads events of a name until one is as wanted.
func await[T any](t *testing.T, s *stream, name string, isWanted func(*T) bool) *T {
	t.Helper()
	event := ""
	for s.Scan() {
		if after, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			event = after
		}
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok && event == name {
			view := new(T)
			footest.Must(t, json.Unmarshal([]byte(data), view))
			if isWanted(view) {
				return view
			}
		}
	}
	t.Fatalf("the stream ended: %v", s.Err())
	return nil
}

// TestAChangeArrives checks that a change of a Foo is sent, in the list and in the details.
func TestAChangeArrives(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	s := f.open(t, "blog")
	await(t, s, "detail", func(d *detailView) bool { return d.Status == "True" })
	f.setMessage(t, "blog", metav1.ConditionFalse, "Broken", "it broke")
	await(t, s, "list", func(l *listView) bool { return len(l.Items) == 5 && l.Items[0].Reason == "Broken" })
	got := await(t, s, "detail", func(d *detailView) bool { return d.Reason == "Broken" })
	if !strings.Contains(got.Why.State.Text, "it broke") || len(got.History.States) != 2 {
		t.Errorf("the details are %+v, %+v", got.Why.State, got.History)
	}
	footest.Must(t, f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace).Delete(t.Context(), "blog", metav1.DeleteOptions{}))
	await(t, s, "list", func(l *listView) bool { return len(l.Items) == 4 })
	await(t, s, "detail", func(d *detailView) bool { return d.Why == nil })
}

// TestOnlyChangesAreSent checks that changes of one Foo do not send the details of another,
// and that many changes in a short time are few events.
func TestOnlyChangesAreSent(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	s := f.open(t, "blog")
	await(t, s, "detail", func(*detailView) bool { return true })
	started := time.Now()
	for i := range 60 { // the fake API server queues 100
		f.setMessage(t, "wiki", metav1.ConditionFalse, fmt.Sprint("Broken", i), "")
		pause(t.Context(), 10*time.Millisecond)
	}
	lists, details := 0, 0
	for _, last := range []string{"Done", "Over"} { // between the two, all that was due is sent
		f.setMessage(t, "wiki", metav1.ConditionFalse, last, "")
		for s.Scan() && !strings.Contains(s.Text(), last) {
			lists += strings.Count(s.Text(), "event: list")
			details += strings.Count(s.Text(), "event: detail")
		}
	}
	if most := int(5*time.Since(started).Seconds()) + 3; s.Err() != nil || lists > most || details > 0 {
		t.Errorf("%d lists, at most %d wanted, and %d details for 62 changes, %v", lists, most, details, s.Err())
	}
}

// TestAQuietStreamStaysOpen checks that a stream on which nothing is sent for longer than
// the limit of an answer goes on.
func TestAQuietStreamStaysOpen(t *testing.T) {
	f := newFixture(t, team()...)
	f.writeTimeout = 2 * sendPeriod
	f.start(t)
	s := f.open(t, "")
	await(t, s, "list", func(*listView) bool { return true })
	for range 2 {
		pause(t.Context(), 2*f.writeTimeout)
		f.live.changes.tell() // as the Lease's reads do
	}
	f.setMessage(t, "wiki", metav1.ConditionFalse, "Broken", "")
	await(t, s, "list", func(l *listView) bool { return l.Items[4].Reason == "Broken" })
}

// TestTheEndEndsStreams checks that an open page does not hold up the end of the command.
func TestTheEndEndsStreams(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	s := f.open(t, "")
	await(t, s, "list", func(*listView) bool { return true })
	started := time.Now()
	footest.Must(t, f.stop())
	for s.Scan() {
		continue
	}
	if s.Err() != nil || time.Since(started) > stopGrace {
		t.Errorf("it took %v, and the stream ended with %v", time.Since(started), s.Err())
	}
}

// TestASilentConnectionIsNoFailure checks the end beside a connection without a request, as
// browsers open them in advance.
func TestASilentConnectionIsNoFailure(t *testing.T) {
	f := newFixture(t).start(t)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.server.address)
	footest.Must(t, err)
	defer connection.Close()
	f.get(t, http.MethodGet, "/?", f.server.token, nil) // the server has accepted the other, too
	footest.Must(t, f.stop())
}

// TestStreamsAreLimited checks that closed streams make room for others.
func TestStreamsAreLimited(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	var open []*stream
	for range maxStreams {
		open = append(open, f.open(t, ""))
	}
	if got := f.get(t, http.MethodGet, "/events?", f.server.token, nil); got.status != http.StatusServiceUnavailable {
		t.Errorf("one more has the status %d", got.status)
	}
	for _, s := range open {
		s.body.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for f.server.streams.Load() > 0 {
		if !pause(ctx, 10*time.Millisecond) {
			t.Fatal("closed streams are still served")
		}
	}
	f.open(t, "")
}
