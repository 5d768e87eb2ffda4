// SPDX-License-Identifier: Apache-2.0

// Tests of the faults, against a server that records its requests.

package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const deployments = "/apis/apps/v1/namespaces/ns/deployments"

// server is an API server that records its requests. A test sends its watch events.
type server struct {
	mu       sync.Mutex
	requests []string
	events   chan string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if r.URL.Query().Get("watch") != "true" {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"7"}}`)
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-s.events:
			_, _ = io.WriteString(w, event+"\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) saw(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.requests, request)
}

// newPair starts a server and a proxy to it, and returns a client that trusts the proxy.
func newPair(t *testing.T, namespace string) (*server, *Proxy, *http.Client) {
	t.Helper()
	s := &server{events: make(chan string, 10)}
	backend := httptest.NewServer(s)
	t.Cleanup(backend.Close)
	p, err := New(&rest.Config{Host: backend.URL}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Certificate())
	return s, p, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

// post sends a write and returns the status code, or 0 without an answer.
func post(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestFaults(t *testing.T) {
	for name, row := range map[string]struct {
		fault Fault
		code  int
		done  bool
	}{
		"none":         {nil, http.StatusOK, true},
		"cut":          {Cut, 0, false},
		"reply lost":   {LoseReply, 0, true},
		"crash before": {Before("crash", func() {}), 0, false},
		"crash after":  {After("crash", func() {}), 0, true},
		"conflict":     {Conflict, http.StatusConflict, false},
		"too many":     {TooMany, http.StatusTooManyRequests, false},
		"unauthorized": {Unauthorized, http.StatusUnauthorized, false},
		"expired":      {Expired, http.StatusGone, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, client := newPair(t, "")
			p.Use(func(*Call) Fault { return row.fault })
			if code := post(t, client, p.URL+deployments); code != row.code {
				t.Errorf("the client got %d, want %d", code, row.code)
			}
			if done := s.saw("POST " + deployments); done != row.done {
				t.Errorf("the API server received the request: %v, want %v", done, row.done)
			}
		})
	}
}

func TestCutAndLater(t *testing.T) {
	s, p, client := newPair(t, "")
	begin := make(chan struct{})
	p.Use(func(call *Call) Fault {
		if call.Write == 1 {
			return CutAndLater(begin)
		}
		return nil
	})
	if code := post(t, client, p.URL+deployments); code != 0 || s.saw("POST "+deployments) {
		t.Fatalf("the client got %d, and the write was done: %v", code, s.saw("POST "+deployments))
	}
	close(begin)
	err := p.Await(t.Context(), func(calls []Call) bool { return calls[0].Code == http.StatusOK })
	if err != nil || !s.saw("POST "+deployments) {
		t.Errorf("the write was not done later: %v", err)
	}
}

func TestConfinedToOneNamespace(t *testing.T) {
	s, p, client := newPair(t, "mine")
	post(t, client, p.URL+"/apis/apps/v1/deployments")
	post(t, client, p.URL+"/apis/apps/v1/namespaces/other/deployments")
	post(t, client, p.URL+"/api/v1/nodes")
	for _, want := range []string{
		"POST /apis/apps/v1/namespaces/mine/deployments", "POST /apis/apps/v1/namespaces/other/deployments", "POST /api/v1/nodes",
	} {
		if !s.saw(want) {
			t.Errorf("the API server did not receive %s", want)
		}
	}
}

func TestCallFields(t *testing.T) {
	_, p, client := newPair(t, "")
	post(t, client, p.URL+"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/ns/foos/a/status")
	post(t, client, p.URL+"/api/v1/namespaces/ns/events")
	calls := p.Calls()
	status, event := calls[0], calls[1]
	if status.Namespace != "ns" || status.Resource != "foos" || status.Name != "a" || status.Subresource != "status" || status.Write != 1 || status.Version != "7" {
		t.Errorf("the call of a status update is %+v", status)
	}
	if event.Resource != "events" || event.Write != 0 {
		t.Errorf("the call of an event is %+v", event)
	}
}

// watched opens a watch, and returns a function that returns the name in its next event.
func watched(t *testing.T, p *Proxy, client *http.Client) func() string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+deployments+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	events := json.NewDecoder(response.Body)
	return func() string {
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := events.Decode(&event); err != nil {
			return "end"
		}
		return event.Object.Name
	}
}

func event(kind, name string) string {
	return `{"type":"` + kind + `","object":{"metadata":{"name":"` + name + `"}}}`
}

func TestEditEvents(t *testing.T) {
	s, p, client := newPair(t, "")
	p.EditEvents(func(e Event) int {
		return map[string]int{"DELETED": 0, "MODIFIED": 2}[e.Type]
	})
	next := watched(t, p, client)
	s.events <- event("DELETED", "dropped")
	s.events <- event("MODIFIED", "doubled")
	if first, second := next(), next(); first != "doubled" || second != "doubled" {
		t.Errorf("the client got %s, %s", first, second)
	}
}

func TestHoldEventsAndEndWatches(t *testing.T) {
	s, p, client := newPair(t, "")
	next := watched(t, p, client)
	release := p.HoldEvents("deployments")
	s.events <- event("ADDED", "a")
	seen := make(chan string)
	go func() { seen <- next() }()
	s.events <- event("ADDED", "b")
	select {
	case name := <-seen:
		t.Fatalf("the client got %s, which is held", name)
	case <-time.After(50 * time.Millisecond): // without the hold, the event would arrive sooner
	}
	release()
	if name := <-seen; name != "a" {
		t.Errorf("the client got %s, want a", name)
	}
	if name := next(); name != "b" {
		t.Errorf("the client got %s, want b", name)
	}
	p.EndWatches("deployments")
	if name := next(); name != "end" {
		t.Errorf("the client got %s from a watch that has ended", name)
	}
}

func TestReplayTo(t *testing.T) {
	s, p, client := newPair(t, "")
	next := watched(t, p, client)
	s.events <- event("ADDED", "old")
	next()
	until := make(chan struct{})
	p.ReplayTo("deployments", until)
	s.events <- event("ADDED", "new")
	next()

	again := watched(t, p, client)
	if name := again(); name != "old" {
		t.Errorf("the client got %s, want old", name)
	}
	close(until)
	if name := again(); name != "end" {
		t.Errorf("the client got %s, want the end", name)
	}
}

func TestDown(t *testing.T) {
	s, p, client := newPair(t, "")
	next := watched(t, p, client)
	up := p.Down()
	if name := next(); name != "end" {
		t.Errorf("the watch did not end, the client got %s", name)
	}
	if code := post(t, client, p.URL+deployments); code != 0 || s.saw("POST "+deployments) {
		t.Errorf("a request was answered with %d", code)
	}
	up()
	if code := post(t, client, p.URL+deployments); code != http.StatusOK {
		t.Errorf("afterwards a request was answered with %d", code)
	}
}

func TestRetryAfter(t *testing.T) {
	for name, row := range map[string]struct {
		fault      Fault
		retryAfter string
		body       string
	}{
		"too many":             {TooMany, "1", `"reason":"TooManyRequests"`},
		"retry after":          {RetryAfter(10), "10", `"retryAfterSeconds":10`},
		"retry after, as text": {RetryAfterText(10), "10", "Too many requests, please try again later.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p, client := newPair(t, "")
			p.Use(func(*Call) Fault { return row.fault })
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+deployments, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.Header.Get("Retry-After") != row.retryAfter || !bytes.Contains(body, []byte(row.body)) {
				t.Errorf("the answer is %v %s", response.Header, body)
			}
		})
	}
}
