// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

func (f *fixture) detail(name string) *detailView {
	return f.live.detail(cache.ObjectName{Namespace: footest.Namespace, Name: name})
}

// TestThePageHasAll checks that what is watched reaches the explanation of a Foo.
func TestThePageHasAll(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	got := f.detail("shop")
	if got.Error != "" || got.Status != "False" || !strings.Contains(got.Before, "exceeded quota") {
		t.Fatalf("it is %+v", got)
	}
	why := got.Why
	if len(why.Has) != 1 || len(why.Has[0].Below) != 1 || len(why.Has[0].Below[0].Below) != 1 || len(why.Events) != 1 || len(why.Owners) != 1 {
		t.Errorf("it has %+v, the Events %+v and the owners %+v", why.Has, why.Events, why.Owners)
	}
	if state := f.live.list().Controller.State; state != "running" {
		t.Errorf("the controller is %s", state)
	}
	if len(why.Next.Writes) > 0 || len(why.Missing) > 0 || !strings.Contains(why.Controller.Text, "3s ago") {
		t.Errorf("the next sync is %+v, %q is missing, and the controller is %q", why.Next, why.Missing, why.Controller.Text)
	}
	footest.Must(t, f.kube.Tracker().Delete(footest.Primary.Resource, footest.Namespace, "blog"))
	got = await(t, f.open(t, "blog"), "detail", func(d *detailView) bool { return d.After != "" })
	if len(got.Why.Next.Writes) != 1 || !strings.Contains(got.Before, "ready: ") || !strings.Contains(got.After, "not ready, ") {
		t.Errorf("without its child it is %q, then %q", got.Before, got.After)
	}
}

// forbid makes a fake API server refuse all reads of a resource.
func forbid(fake *clienttesting.Fake, resource string) {
	fake.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no right"))
	})
}

// TestMissingPermissions checks that the page works without some, and says which.
func TestMissingPermissions(t *testing.T) {
	f := newFixture(t, team()...)
	for _, resource := range []string{"replicasets", "pods", "events", "leases"} {
		forbid(&f.kube.Fake, resource)
	}
	f.start(t, "")
	why := f.detail("shop").Why
	for _, resource := range []string{"replicasets.apps", "pods", "events"} {
		if !strings.Contains(fmt.Sprint(why.Missing), "the permission to list and watch "+resource+" is missing") {
			t.Errorf("%s: it says %q", resource, why.Missing)
		}
	}
	if len(why.Has) != 1 || why.Has[0].Below != nil || f.live.list().Controller.State != "unknown" {
		t.Errorf("it has %+v, and the controller is %+v", why.Has, f.live.list().Controller)
	}
}

// TestWithoutFoosThereIsNoPage checks that the start fails, and says what is missing.
func TestWithoutFoosThereIsNoPage(t *testing.T) {
	for _, resource := range []schema.GroupVersionResource{footest.FoosResource, footest.Primary.Resource} {
		f := newFixture(t)
		forbid(&f.foo.Fake, resource.Resource)
		forbid(&f.kube.Fake, resource.Resource)
		live, err := NewLive(Options{Cluster: &cluster.Cluster{Kube: f.kube, Foo: f.foo}, Kinds: plan.Kinds("x"), Now: time.Now})
		footest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err = live.Start(ctx)
		cancel()
		want := "the permission to list and watch " + resource.GroupResource().String() + " is missing"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the start ended with %v, want %q", resource.Resource, err, want)
		}
	}
}

// TestALostServerIsAProblem checks that the page says so at once, and until it is over.
func TestALostServerIsAProblem(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	var isLost atomic.Bool
	f.kube.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return isLost.Load(), nil, &url.Error{Op: "Get", URL: "https://api", Err: syscall.ECONNREFUSED}
	})
	for _, lost := range []bool{true, false} {
		isLost.Store(lost)
		f.live.readLease(t.Context())
		problems := strings.Join(f.live.list().Problems, "\n")
		if lost != strings.Contains(problems, "the API server does not answer since 2026-03-02 12:00:00: ") || !lost && problems != "" {
			t.Errorf("lost is %t, and the problems are %q", lost, problems)
		}
	}
}

// logEvent adds a write to the Foo blog to an audit log, and then a text.
func logEvent(t *testing.T, path, verb, resource, then string) {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	footest.Must(t, err)
	_, err = fmt.Fprintf(file, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",`+
		`"requestURI":"/x","verb":%q,"user":{"username":"me"},"userAgent":"me/v1","objectRef":{"resource":%q,"subresource":%q,"namespace":%q,`+
		`"name":"blog","apiGroup":"samplecontroller.k8s.io"},"responseStatus":{"code":200},"requestReceivedTimestamp":%[5]q,"stageTimestamp":%[5]q}`+"\n%[6]s",
		verb, resource, subresource, footest.Namespace, noon.Format(time.RFC3339Nano), then)
	footest.Must(t, err)
	footest.Must(t, file.Close())
}

// TestTheAuditLogMakesTimelines checks what is in the log at the start, what is added to it,
// and that a line that is not an event is reported.
func TestTheAuditLogMakesTimelines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	logEvent(t, path, "create", "foos", "")
	f := newFixture(t, team()...).start(t, path)
	s := f.open(t, "blog")
	first := await(t, s, "detail", func(d *detailView) bool { return strings.Contains(d.Timeline.Text, "create") })
	logEvent(t, path, "update", "foos/status", "not an event\n")
	second := await(t, s, "detail", func(d *detailView) bool { return strings.Contains(d.Timeline.Text, "update") })
	if first.Timeline.Version == "" || second.Timeline.Version == first.Timeline.Version {
		t.Errorf("the pictures are %+v and %+v", first.Timeline, second.Timeline)
	}
	if problems := f.live.list().Problems; len(problems) != 1 || !strings.Contains(problems[0], "the audit log: ") {
		t.Errorf("the problems are %q", problems)
	}
	got := f.get(t, "/timeline.svg", "blog")
	picture, err := io.ReadAll(got.body)
	footest.Must(t, err)
	if got.header.Get("Content-Security-Policy") != imagePolicy || !strings.HasPrefix(string(picture), "<svg ") {
		t.Errorf("the picture: %+v\n%s", got.header, picture)
	}
	if other := f.detail("wiki").Timeline; !strings.Contains(other.Problem, "The audit log has nothing about it") {
		t.Errorf("of another Foo there is %+v", other)
	}
}

// TestStrangersGetNothing makes requests that neither the user nor the page makes.
func TestStrangersGetNothing(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	token := f.server.token
	_, port, _ := strings.Cut(f.server.address, ":")
	wrong := newToken()
	if len(token) != 64 || token == wrong {
		t.Errorf("the tokens are %q and %q", token, wrong)
	}
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
		for _, path := range []string{"/", "/style.css", "/app.js", "/dom.js", "/panels.js", "/icon.svg", "/events"} {
			got := f.request(t, test.method, path+"?token="+test.token, test.headers)
			if got.status != test.want {
				t.Errorf("%s: %s: status %d, want %d", name, path, got.status, test.want)
			}
			if test.want != http.StatusOK {
				body, err := io.ReadAll(got.body)
				footest.Must(t, err)
				if strings.Contains(string(body), token) || strings.Contains(string(body), "shop") {
					t.Errorf("%s: %s: it says %q", name, path, body)
				}
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

// TestAChangeArrives checks that a change of a Foo is sent, in the list and in the details.
func TestAChangeArrives(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	s := f.open(t, "blog")
	await(t, s, "detail", func(d *detailView) bool { return d.Status == "True" })
	f.setMessage(t, "blog", "Broken", "it broke")
	await(t, s, "list", func(l *listView) bool { return len(l.Items) == 5 && l.Items[0].Reason == "Broken" })
	got := await(t, s, "detail", func(d *detailView) bool { return d.Reason == "Broken" })
	if !strings.Contains(got.Why.State.Text, "it broke") || !strings.Contains(got.After, "ready: ") {
		t.Errorf("the details are %+v, then %q", got.Why.State, got.After)
	}
	footest.Must(t, f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace).Delete(t.Context(), "blog", metav1.DeleteOptions{}))
	await(t, s, "list", func(l *listView) bool { return len(l.Items) == 4 })
	await(t, s, "detail", func(d *detailView) bool { return d.Why == nil })
}

// TestOnlyChangesAreSent checks that changes of one Foo do not send the details of another,
// and that many changes in a short time are few events.
func TestOnlyChangesAreSent(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	s := f.open(t, "blog")
	await(t, s, "detail", func(*detailView) bool { return true })
	started := time.Now()
	for i := range 60 { // the fake API server queues 100
		f.setMessage(t, "wiki", fmt.Sprint("Broken", i), "")
		pause(t.Context(), 10*time.Millisecond)
	}
	lists, details := 0, 0
	for _, last := range []string{"Done", "Over"} { // between the two, all that was due is sent
		f.setMessage(t, "wiki", last, "")
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
	f.start(t, "")
	s := f.open(t, "")
	await(t, s, "list", func(*listView) bool { return true })
	for range 2 {
		pause(t.Context(), 2*f.writeTimeout)
		f.live.changes.tell() // as the Lease's reads do
	}
	f.setMessage(t, "wiki", "Broken", "")
	await(t, s, "list", func(l *listView) bool { return l.Items[4].Reason == "Broken" })
}

// TestTheEndEndsStreams checks that neither an open page nor a connection without a request,
// as browsers open them in advance, holds up the end of the command or makes it fail.
func TestTheEndEndsStreams(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	s := f.open(t, "")
	await(t, s, "list", func(*listView) bool { return true })
	silent, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.server.address)
	footest.Must(t, err)
	defer silent.Close()
	f.get(t, "/", "") // the server has accepted the other, too
	started := time.Now()
	footest.Must(t, f.stop())
	for s.Scan() {
		continue
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestStreamsAreLimited checks that closed streams make room for others.
func TestStreamsAreLimited(t *testing.T) {
	f := newFixture(t, team()...).start(t, "")
	var open []*answer
	for range maxStreams {
		open = append(open, f.get(t, "/events", ""))
	}
	if got := f.get(t, "/events", ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("one more has the status %d", got.status)
	}
	for _, stream := range open {
		stream.body.Close()
	}
	for limit := time.Now().Add(10 * time.Second); f.server.streams.Load() > 0; pause(t.Context(), 10*time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("closed streams are still served")
		}
	}
	f.open(t, "")
}

// TestHostileTextIsOnlyText checks that names and messages can't end a script or an event.
func TestHostileTextIsOnlyText(t *testing.T) {
	const hostile = "</script><img src=x onerror=alert(1)>\n\ndata: x\u2028"
	f := newFixture(t, team()...).start(t, "")
	f.setMessage(t, "blog", "Broken", hostile)
	s := f.open(t, "blog")
	for s.Scan() {
		if strings.ContainsAny(s.Text(), "<>\u2028") {
			t.Fatalf("a line has %s", s.Text())
		}
		if strings.HasPrefix(s.Text(), "data: x") {
			t.Fatal("a message made an event")
		}
		if strings.Contains(s.Text(), "onerror") && strings.HasPrefix(s.Text(), `data: {"namespace":"team-a","name":"blog"`) {
			break
		}
	}
	footest.Must(t, s.Err())
}
