// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of kubectl foo ui, which shows Foos live: why each is in its
// current state, what the controller would write, and who wrote what. Like the other commands,
// it uses the packages explain and report, and writes nothing.
//
// live.go keeps the state of the cluster, and derives the views of the page. server.go sends
// them when they change, and rejects requests without the token. The directory page contains
// the page itself.
package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

//go:embed page
var files embed.FS

var index = template.Must(template.ParseFS(files, "page/index.html"))

// sendPeriod is the shortest time between two sends.
const sendPeriod = 200 * time.Millisecond

// Content is what the page shows. Its version changes with each change.
type Content interface {
	Version() uint64
	List() any
	Detail(foo cache.ObjectName) any
	// WriteTimeline writes a picture, or returns why there is none.
	WriteTimeline(w io.Writer, foo cache.ObjectName) error
}

// Server serves the page.
type Server struct {
	content Content
	token   string
	address string
}

// New returns a Server for a listener's address, with a new token.
func New(content Content, address net.Addr) *Server {
	return &Server{content: content, token: rand.Text(), address: address.String()}
}

// URL returns the address to open. Anyone who knows it can read the page.
func (s *Server) URL() string { return "http://" + s.address + "/?token=" + s.token }

// Serve answers requests until ctx is done, and then closes all connections, because pages keep
// their streams open.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.serveIndex)
	for _, path := range []string{"/style.css", "/icon.svg", "/app.js", "/dom.js", "/panels.js"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page"+path) })
	}
	mux.HandleFunc("/events", s.stream)
	mux.HandleFunc("/timeline.svg", s.serveTimeline)
	return guard(s.token, s.address, mux)
}

func (s *Server) serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = index.Execute(w, struct{ Token string }{s.token})
}

// serveTimeline serves the picture of a Foo's timeline.
func (s *Server) serveTimeline(w http.ResponseWriter, r *http.Request) {
	var svg bytes.Buffer
	if err := s.content.WriteTimeline(&svg, nameOf(r)); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", imagePolicy)
	_, _ = w.Write(svg.Bytes())
}

// nameOf returns the Foo that a request is about; its name is "" for none.
func nameOf(r *http.Request) cache.ObjectName {
	query := r.URL.Query()
	return cache.ObjectName{Namespace: query.Get("namespace"), Name: query.Get("name")}
}

// stream sends the list, and the details of the Foo in the request, whenever they change.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	controller, selected, sent := http.NewResponseController(w), nameOf(r), map[string][]byte{}
	ticker := time.NewTicker(sendPeriod)
	defer ticker.Stop()
	for known := s.content.Version() - 1; ; {
		if version := s.content.Version(); version != known {
			known = version // the version before reading, so that no change is missed
			var out bytes.Buffer
			err := addEvent(&out, sent, "list", s.content.List())
			if selected.Name != "" {
				err = errors.Join(err, addEvent(&out, sent, "detail", s.content.Detail(selected)))
			}
			_, failed := w.Write(out.Bytes())
			if errors.Join(err, failed, controller.Flush()) != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// addEvent adds an event unless it equals the last one sent.
func addEvent(out *bytes.Buffer, sent map[string][]byte, name string, view any) error {
	data, err := json.Marshal(view) // has no line breaks, and escapes <, > and &
	if err == nil && !bytes.Equal(data, sent[name]) {
		fmt.Fprintf(out, "event: %s\ndata: %s\n\n", name, data)
		sent[name] = data
	}
	return err
}

// policy lets the page load only from this server, and run only its scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// imagePolicy is the policy for pictures, which contain a style sheet.
const imagePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

// guard passes on requests that have the token and do not come from a page of another origin.
// Other programs on this machine can reach the port, and so can pages in the user's browser,
// even under a name that resolves to 127.0.0.1 (DNS rebinding).
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
			http.Error(w, "pages of other origins may not read this", http.StatusForbidden)
		case r.Method != http.MethodGet:
			header.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(token)) != 1:
			http.Error(w, "the token is missing or wrong: open the address that the command printed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
