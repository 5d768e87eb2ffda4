// SPDX-License-Identifier: Apache-2.0

// Tests of the faults, against a server that records its requests.

package proxy

import (
	"context"
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
	accept   string // of the last request
	events   chan string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.accept = r.Header.Get("Accept")
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

func (s *server) accepted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accept
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
	p, err := New(&rest.Config{Host: backend.URL}, namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return s, p, p.server.Client()
}

// send sends a request. It returns the status code, or 0 without an answer, and the
// header and body of the answer.
func send(t *testing.T, client *http.Client, method, url string) (code int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(content)
}

func post(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	code, _, _ := send(t, client, http.MethodPost, url)
	return code
}

func always(*Call) bool { return true }

func TestFaults(t *testing.T) {
	released := make(chan struct{})
	close(released)
	for name, row := range map[string]struct {
		fault Fault
		code  int
		done  bool
		// body is a part of the answer, and retryAfter its header of that name.
		body, retryAfter string
	}{
		"none":                 {fault: Forward, code: http.StatusOK, done: true},
		"cut":                  {fault: Cut},
		"reply lost":           {fault: Done(Cut), done: true},
		"held, then cut":       {fault: Hold(released, Cut)},
		"delayed":              {fault: Delay(time.Millisecond), code: http.StatusOK, done: true},
		"conflict":             {fault: Refuse(http.StatusConflict), code: http.StatusConflict, body: `"reason":"Conflict"`},
		"unauthorized":         {fault: Refuse(http.StatusUnauthorized), code: http.StatusUnauthorized, body: `"reason":"Unauthorized"`},
		"expired":              {fault: Refuse(http.StatusGone), code: http.StatusGone, body: `"reason":"Expired"`},
		"denied":               {fault: Denied(http.StatusNotFound), code: http.StatusNotFound, body: "denied the request"},
		"too many":             {fault: Refuse(http.StatusTooManyRequests), code: 429, retryAfter: "1", body: `"reason":"TooManyRequests"`},
		"retry after":          {fault: RetryAfter(10), code: 429, retryAfter: "10", body: `"retryAfterSeconds":10`},
		"retry after, as text": {fault: RetryAfterText(10), code: 429, retryAfter: "10", body: "Too many requests, please try again later.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, client := newPair(t, "")
			remove := p.Use(always, row.fault)
			code, header, body := send(t, client, http.MethodPost, p.URL+deployments)
			if code != row.code || header.Get("Retry-After") != row.retryAfter || !strings.Contains(body, row.body) {
				t.Errorf("the client got %d %v %s", code, header, body)
			}
			if done := s.saw("POST " + deployments); done != row.done {
				t.Errorf("the API server received the request: %v, want %v", done, row.done)
			}
			remove()
			if code := post(t, client, p.URL+deployments); code != http.StatusOK {
				t.Errorf("after the fault, the client got %d", code)
			}
		})
	}
}

func TestCutAndLater(t *testing.T) {
	s, p, client := newPair(t, "")
	begin := make(chan struct{})
	p.Use((*Call).IsWork, CutAndLater(begin))
	if code := post(t, client, p.URL+deployments); code != 0 || s.saw("POST "+deployments) {
		t.Fatalf("the client got %d, and the write was done: %v", code, s.saw("POST "+deployments))
	}
	close(begin)
	p.late.Wait()
	if p.Calls()[0].Code != http.StatusOK || !s.saw("POST "+deployments) {
		t.Error("the write was not done later")
	}
}

func TestConfinedToOneNamespace(t *testing.T) {
	s, p, client := newPair(t, "mine")
	for path, want := range map[string]string{
		"/apis/apps/v1/deployments":                  "/apis/apps/v1/namespaces/mine/deployments",
		"/apis/apps/v1/namespaces/other/deployments": "/apis/apps/v1/namespaces/other/deployments",
		"/api/v1/nodes":                              "/api/v1/nodes",
	} {
		post(t, client, p.URL+path)
		if !s.saw("POST " + want) {
			t.Errorf("the API server did not receive %s", want)
		}
	}
}

func TestConfinedToOneNamespaceForOtherResources(t *testing.T) {
	s, p, client := newPair(t, "mine")
	p.Confine(func(call *Call) bool { return call.Resource == "pods" })
	for path, want := range map[string]string{
		"/api/v1/pods":              "/api/v1/namespaces/mine/pods",
		"/apis/apps/v1/deployments": "/apis/apps/v1/deployments",
	} {
		post(t, client, p.URL+path)
		if !s.saw("POST " + want) {
			t.Errorf("the API server did not receive %s", want)
		}
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
		var event struct{ Object metav1.PartialObjectMetadata }
		if err := events.Decode(&event); err != nil {
			return "end"
		}
		return event.Object.Name
	}
}

func event(kind, name string) string {
	return `{"type":"` + kind + `","object":{"metadata":{"name":"` + name + `"}}}`
}

func TestAnswersAreInJSONAndOfTheKindThatIsAskedFor(t *testing.T) {
	s, p, client := newPair(t, "")
	const metadata = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for accept, want := range map[string]string{
		"":                 "application/json",
		"application/json": "application/json",
		"application/vnd.kubernetes.protobuf,application/json":                                                    "application/json",
		"application/vnd.kubernetes.protobuf;" + metadata + ",application/json;" + metadata + ",application/json": "application/json;" + metadata + ",application/json",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+deployments, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := s.accepted(); got != want {
			t.Errorf("%q becomes %q, want %q", accept, got, want)
		}
	}
}

func TestEditEvents(t *testing.T) {
	s, p, client := newPair(t, "")
	p.EditEvents(func(_ context.Context, e Event) [][]byte {
		return e.Times(map[string]int{"DELETED": 0, "MODIFIED": 2}[e.Type])
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

func TestSilence(t *testing.T) {
	s, p, client := newPair(t, "")
	next := watched(t, p, client)
	p.Silence()
	s.events <- event("ADDED", "lost")
	seen := make(chan string)
	go func() { seen <- next() }()
	if code := post(t, client, p.URL+deployments); code != http.StatusOK { // over a new connection
		t.Errorf("the client got %d", code)
	}
	client.CloseIdleConnections()
	p.Close()
	if name := <-seen; name != "end" {
		t.Errorf("the client got %s over a dead connection", name)
	}
}
