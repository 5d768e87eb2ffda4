// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of kubectl foo ui, which shows Foos live: why each is as it
// is, what the controller would write, and what happened. It takes what it says from the
// packages explain and report, as the other commands do, and writes nothing.
//
// live.go keeps the state of the cluster, and view.go makes of it what the page gets. This
// file sends that whenever it changes, and refuses strangers. The folder page has the page
// itself.
package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
)

//go:embed page
var files embed.FS

// stopGrace is how long requests may take after the end.
const stopGrace = 2 * time.Second

// Server serves the page.
type Server struct {
	live    *Live
	token   string
	address string
	page    *template.Template
	// writeTimeout is how long a page may take to receive an answer, or an event.
	writeTimeout time.Duration
	// streams is the number of open streams.
	streams atomic.Int32
}

// New returns a Server for a listener's address, with a new token.
func New(live *Live, address net.Addr) (*Server, error) {
	page, err := template.ParseFS(files, "page/index.html")
	if err != nil {
		return nil, err
	}
	return &Server{live: live, token: newToken(), address: address.String(), page: page, writeTimeout: writeTimeout}, nil
}

// URL returns the address to open. Who knows it can see what the page shows.
func (s *Server) URL() string { return "http://" + s.address + "/?token=" + s.token }

// Serve answers requests until ctx is done.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the streams
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      s.writeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		if server.Shutdown(grace) == nil {
			stopped <- nil
			return
		}
		// Browsers open connections in advance, which say nothing for seconds.
		stopped <- server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	const script = "text/javascript; charset=utf-8"
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.serveIndex)
	for path, contentType := range map[string]string{
		"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"app.js": script, "dom.js": script, "panels.js": script,
	} {
		mux.HandleFunc("/"+path, func(w http.ResponseWriter, _ *http.Request) {
			content, err := fs.ReadFile(files, "page/"+path)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(content)
		})
	}
	mux.HandleFunc("/events", s.stream)
	mux.HandleFunc("/timeline.svg", s.serveTimeline)
	return guard(s.token, s.address, mux)
}

func (s *Server) serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.page.Execute(w, struct{ Token string }{s.token})
}

// serveTimeline serves the picture of a Foo's timeline.
func (s *Server) serveTimeline(w http.ResponseWriter, r *http.Request) {
	if s.live.writes == nil {
		http.Error(w, noLog, http.StatusNotFound)
		return
	}
	drawn := s.live.writes.draw(nameOf(r))
	if drawn.err != nil {
		http.Error(w, drawn.err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", imagePolicy)
	_, _ = w.Write(drawn.svg)
}

// nameOf returns the Foo that a request is about; its name is "" for none.
func nameOf(r *http.Request) cache.ObjectName {
	query := r.URL.Query()
	return cache.ObjectName{Namespace: query.Get("namespace"), Name: query.Get("name")}
}

// policy lets the page load only what this server has, and run only its script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// imagePolicy is that of pictures, which have a style sheet inside.
const imagePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

// newToken returns a random token of 256 bits.
func newToken() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}

// guard lets requests pass to next that know the token, and that no page of another origin
// makes. Other programs of this machine can reach the port, and so can pages in the user's
// browser, also with a name that leads to 127.0.0.1 (DNS rebinding).
func guard(token, address string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	hosts := []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cache-Control", "no-store")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		origin, site := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "open the address that the command printed", http.StatusMisdirectedRequest)
		case slices.ContainsFunc(origin, func(o string) bool { return o != "http://"+r.Host }),
			slices.ContainsFunc(site, func(s string) bool { return s != "same-origin" && s != "none" }):
			http.Error(w, "no other page may read this", http.StatusForbidden)
		case r.Method != http.MethodGet:
			header.Set("Allow", http.MethodGet)
			http.Error(w, "this page only reads", http.StatusMethodNotAllowed)
		case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(token)) != 1:
			http.Error(w, "the token is missing or wrong: open the address that the command printed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

const (
	// maxStreams is how many pages may be open.
	maxStreams = 32
	// sendPeriod is the shortest time between two sends.
	sendPeriod = 200 * time.Millisecond
	// writeTimeout is the usual limit of an answer, or an event.
	writeTimeout = 20 * time.Second
)

// stream sends the list, and what there is to say about the Foo of the request, whenever
// they change.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, out, selected := r.Context(), &sender{w: w, sent: map[string][]byte{}}, nameOf(r)
	for {
		changed := s.live.changes.wait() // before reading, to miss nothing
		out.extend(s.writeTimeout)
		out.send("list", s.live.list())
		if selected.Name != "" {
			out.send("detail", s.live.detail(selected))
		}
		if out.flush() != nil || !pause(ctx, sendPeriod) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sender writes events, and remembers the first error and what it sent.
type sender struct {
	w    http.ResponseWriter
	sent map[string][]byte
	err  error
}

// extend gives the page more time to receive what is sent next.
func (s *sender) extend(limit time.Duration) {
	if s.err == nil {
		s.err = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(limit))
	}
}

// send sends an event unless it is what was sent last.
func (s *sender) send(name string, view any) {
	data, err := json.Marshal(view) // has no line breaks, and escapes <, > and &
	switch {
	case s.err != nil:
		return
	case err != nil:
		s.err = err
		return
	case bytes.Equal(data, s.sent[name]):
		return
	}
	_, s.err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, data)
	s.sent[name] = data
}

// flush sends what is buffered, and at least a comment, which finds out whether the page is
// still there.
func (s *sender) flush() error {
	if s.err != nil {
		return s.err
	}
	if _, s.err = fmt.Fprint(s.w, ":\n\n"); s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}
