// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of kubectl foo ui, which shows Foos live: why each is as it
// is, what the controller would write, and what happened. It takes what it says from the
// packages explain and report, as the other commands do, and writes nothing.
//
// live.go keeps the state of the cluster, view.go makes of it what the page gets,
// stream.go sends that whenever it changes, and guard.go refuses strangers. The folder
// page has the page itself.
package ui

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net"
	"net/http"
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
