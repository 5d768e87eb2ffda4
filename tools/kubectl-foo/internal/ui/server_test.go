// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

// stub is a content in which all Foos have one message, and a list that does not change.
type stub struct {
	version atomic.Uint64
	message atomic.Value
}

func (s *stub) Version() uint64             { return s.version.Load() }
func (s *stub) List() any                   { return "shop" }
func (s *stub) Detail(cache.ObjectName) any { return s.message.Load() }
func (s *stub) WriteTimeline(w io.Writer, _ cache.ObjectName) error {
	_, err := io.WriteString(w, "<svg>shop</svg>")
	return err
}

func (s *stub) set(message string) {
	s.message.Store(message)
	s.version.Add(1)
}

// fixture is a page of a stub.
type fixture struct {
	stub

	server *Server
	// stop ends the server, and returns its error.
	stop func() error
}

func serve(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	f.set("first")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	footest.Must(t, err)
	f.server = New(f, listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- f.server.Serve(ctx, listener) }()
	f.stop = func() error { cancel(); return <-ended }
	return f
}

// answer is the answer to a request, whose body is closed at the end of the test.
type answer struct {
	status int
	header http.Header
	body   io.Reader
}

// request makes a request. A header Host is the host of the request.
func (f *fixture) request(t *testing.T, method, path string, headers map[string]string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, "http://"+f.server.address+path, http.NoBody)
	footest.Must(t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	request.Host = headers["Host"]
	response, err := http.DefaultClient.Do(request)
	footest.Must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return answer{response.StatusCode, response.Header, response.Body}
}

// events opens the stream of a Foo.
func (f *fixture) events(t *testing.T) *bufio.Scanner {
	t.Helper()
	return bufio.NewScanner(f.request(t, http.MethodGet, "/events?name=x&token="+f.server.token, nil).body)
}

// await reads a stream until a line has a text, and returns all before that.
func await(t *testing.T, lines *bufio.Scanner, text string) (before string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return before
		}
		before += lines.Text() + "\n"
	}
	t.Fatalf("the stream ended without %q: %v\n%s", text, lines.Err(), before)
	return ""
}

// TestStrangersGetNothing makes requests that neither the user nor the page makes.
func TestStrangersGetNothing(t *testing.T) {
	f := serve(t)
	token := f.server.token
	_, port, _ := strings.Cut(f.server.address, ":")
	wrong := serve(t).server.token
	if len(token) < 22 || token == wrong { // base32: 110 bits
		t.Errorf("the tokens are %q and %q", token, wrong)
	}
	policies := map[bool]string{false: policy, true: imagePolicy}
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
		"a part of the token":          {"GET", token[1:], nil, 401},
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
		for _, path := range []string{"/", "/style.css", "/app.js", "/dom.js", "/panels.js", "/icon.svg", "/events", "/timeline.svg"} {
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
				"Content-Security-Policy": policies[path == "/timeline.svg" && test.want == http.StatusOK], "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
				"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			} {
				if value := got.header.Get(header); value != want {
					t.Errorf("%s: %s: the header %s is %q, want %q", name, path, header, value, want)
				}
			}
		}
	}
}

// TestOnlyChangesAreSent checks that an event has what is new, that many changes in a short
// time are few events, and that no text ends an event.
func TestOnlyChangesAreSent(t *testing.T) {
	f := serve(t)
	lines := f.events(t)
	if got, want := await(t, lines, `"first"`), "event: list\ndata: \"shop\"\n\nevent: detail\n"; got != want {
		t.Errorf("it begins with %q, not %q", got, want)
	}
	for range 1000 {
		f.set("</script><img src=x onerror=alert(1)>\n\ndata: x\u2028")
		f.set("x")
	}
	f.set("</script>\n\ndata: last\u2028")
	got := await(t, lines, `data: "\u003c/script\u003e\n\ndata: last\u2028"`)
	if strings.Contains(got, "list") || strings.Count(got, "event") > 10 || strings.ContainsAny(got, "<>\u2028") {
		t.Errorf("of 2001 changes it sends %q", got)
	}
}

// TestTheEndEndsStreams checks that neither an open page nor a connection without a request,
// as browsers open them in advance, holds up the end of the command or makes it fail.
func TestTheEndEndsStreams(t *testing.T) {
	f := serve(t)
	lines := f.events(t)
	await(t, lines, "first")
	silent, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.server.address)
	footest.Must(t, err)
	defer silent.Close()
	f.request(t, http.MethodGet, "/", nil) // the server has accepted the other, too
	started := time.Now()
	footest.Must(t, f.stop())
	for lines.Scan() {
		continue
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestALostServerIsAProblem checks that the page says so at once, and until it is over.
func TestALostServerIsAProblem(t *testing.T) {
	var live Live
	for _, err := range []error{&url.Error{Op: "Get", URL: "https://api", Err: syscall.ECONNREFUSED}, nil} {
		live.setLease(cluster.Lease{Err: err})
		problems := strings.Join(live.problems(), "\n")
		if isSaid := strings.Contains(problems, "the API server has not responded since 20"); isSaid != (err != nil) || !isSaid && problems != "" {
			t.Errorf("after %v, the problems are %q", err, problems)
		}
	}
}
