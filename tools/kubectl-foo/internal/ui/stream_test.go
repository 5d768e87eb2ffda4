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
	"os"
	"path/filepath"
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

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string // without that of a stream
}

// get makes a request. A header Host is the host of the request.
func (f *fixture) get(t *testing.T, method, path, token string, headers map[string]string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+f.server.address+path, http.NoBody)
	footest.Must(t, err)
	if token != "" {
		request.URL.RawQuery += "&token=" + token
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	if host := headers["Host"]; host != "" {
		request.Host = host
	}
	response, err := http.DefaultClient.Do(request)
	footest.Must(t, err)
	defer response.Body.Close()
	if strings.HasPrefix(path, "/events") && response.StatusCode == http.StatusOK {
		return answer{response.StatusCode, response.Header, ""}
	}
	body, err := io.ReadAll(response.Body)
	footest.Must(t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// TestStrangersGetNothing makes requests that neither the user nor the page makes.
func TestStrangersGetNothing(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	token := f.server.token
	_, port, _ := strings.Cut(f.server.address, ":")
	wrong := strings.Repeat("0", len(token))
	for name, test := range map[string]struct {
		method, token string
		headers       map[string]string
		want          int
	}{
		"the page":                     {"GET", token, nil, 200},
		"by the name localhost":        {"GET", token, map[string]string{"Host": "localhost:" + port}, 200},
		"a request of the page":        {"GET", token, map[string]string{"Origin": "http://" + f.server.address, "Sec-Fetch-Site": "same-origin"}, 200},
		"a typed address":              {"GET", token, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"no token":                     {"GET", "", nil, 401},
		"a wrong token":                {"GET", wrong, nil, 401},
		"a part of the token":          {"GET", token[:63], nil, 401},
		"a longer token":               {"GET", token + "0", nil, 401},
		"a wrong and the token":        {"GET", wrong + "&token=" + token, nil, 401},
		"a rebound name":               {"GET", token, map[string]string{"Host": "evil.example:" + port}, 421},
		"another port":                 {"GET", token, map[string]string{"Host": "127.0.0.1:1"}, 421},
		"no port":                      {"GET", token, map[string]string{"Host": "127.0.0.1"}, 421},
		"another origin":               {"GET", token, map[string]string{"Origin": "http://evil.example"}, 403},
		"another program's origin":     {"GET", token, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"no origin in a sandbox":       {"GET", token, map[string]string{"Origin": "null"}, 403},
		"another site":                 {"GET", token, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a page of another local port": {"GET", token, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a POST":                       {"POST", token, nil, 405},
		"a DELETE":                     {"DELETE", token, nil, 405},
		"an OPTIONS of CORS":           {"OPTIONS", token, map[string]string{"Access-Control-Request-Method": "GET"}, 405},
	} {
		for _, path := range []string{"/?", "/style.css?", "/app.js?", "/dom.js?", "/panels.js?", "/icon.svg?", "/events?"} {
			got := f.get(t, test.method, path, test.token, test.headers)
			if got.status != test.want {
				t.Errorf("%s: %s: status %d, want %d", name, path, got.status, test.want)
			}
			if test.want != http.StatusOK && (strings.Contains(got.body, token) || strings.Contains(got.body, "shop")) {
				t.Errorf("%s: %s: it says %q", name, path, got.body)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
				"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			} {
				if value := got.header.Get(header); value != want {
					t.Errorf("%s: %s: the header %s is %q, want %q", name, path, header, value, want)
				}
			}
		}
	}
}

// TestTheTokenIsLongAndNew checks its 256 bits, and that each start has another.
func TestTheTokenIsLongAndNew(t *testing.T) {
	if a, b := newToken(), newToken(); len(a) != 64 || a == b {
		t.Errorf("the tokens are %q and %q", a, b)
	}
}

// TestThePolicyLetsNothingElseIn checks that the page's policy allows neither inline scripts
// nor other hosts.
func TestThePolicyLetsNothingElseIn(t *testing.T) {
	for directive := range strings.SplitSeq(policy, ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		if strings.HasSuffix(name, "-src") && sources != "'self'" && sources != "'none'" {
			t.Errorf("%s allows %s", name, sources)
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %q", want)
		}
	}
}

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
