// SPDX-License-Identifier: Apache-2.0

// Package serving serves a process's health, metrics and profiles over HTTP.
//
// Health is open to everyone (ControllerHealth). Metrics and profiles are served over TLS
// to users whom the API server allows to get them (MetricsHandler with a Gate). Nothing here
// depends on what the process does. Run each handler in its own Server: Listen, then Serve.
//
// A Gate needs permission to create tokenreviews and subjectaccessreviews. A scraper costs the API
// server at most two reviews a minute, and all strangers together 10 a second.
package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

const (
	// readTimeout bounds the TLS handshake, and then each request.
	readTimeout = 5 * time.Second
	// writeTimeout bounds a response, from the end of the request's header: two reviews
	// and a short refusal.
	writeTimeout = 10 * time.Second
	// trustedWriteTimeout replaces writeTimeout when the gate lets a request through.
	// Handlers of net/http/pprof that take longer set their own.
	trustedWriteTimeout = 2 * time.Minute
	// idleTimeout is longer than the usual scrape interval, so that scrapes share a
	// connection. Connections that are not trusted are never idle: see
	// closeUnlessTrusted.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes is enough for any bearer token.
	maxHeaderBytes = 16 << 10
	// ShutdownTimeout bounds how long a stop waits for responses in progress.
	ShutdownTimeout = 2 * time.Second
)

// Server is an HTTP server that listens at its address.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen creates a server for a handler and listens at an address, [HOST]:PORT. Clients can
// connect from then on; Serve responds to them. If secure is not nil, the server uses TLS.
// The error says what is wrong with the address.
//
// Anyone can connect, so the number of open connections is bounded (connections), idle
// clients are soon disconnected, and each response closes its connection unless a Gate
// let the request through.
//
// HTTP/2 is off. A scraper sends one request at a time and does not benefit from it,
// while each stream that a client opens and resets costs the server work (CVE-2023-44487
// and its successors). Without HTTP/2, a connection has one request at a time, so the bound
// on connections also bounds the requests.
func Listen(address string, handler http.Handler, secure *tls.Config) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return newServer(listener, handler, secure), nil
}

func newServer(listener net.Listener, handler http.Handler, secure *tls.Config) *Server {
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	open := &connections{trusted: sets.New[net.Conn]()}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &Server{listener: listener, http: &http.Server{
		Handler:        closeUnlessTrusted(handler),
		Protocols:      protocols,
		ConnContext:    open.withTrust,
		ConnState:      open.track,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// Otherwise net/http, and not the handler, responds to "OPTIONS *".
		DisableGeneralOptionsHandler: true,
	}}
}

// Address returns the address that the server listens at. If it was created with port 0, this
// is the actual port.
func (s *Server) Address() string {
	return s.listener.Addr().String()
}

// Serve responds to requests until ctx is done, then waits for the responses in progress, for
// at most two seconds. It returns an error only if it stopped before ctx was done.
func (s *Server) Serve(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	s.http.ErrorLog = log.New(errorLog{logger}, "", 0)
	// A response in progress outlives ctx.
	s.http.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }

	defer s.http.Close()
	finished := make(chan struct{})
	isServing := context.AfterFunc(ctx, func() {
		defer close(finished)
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
		defer cancel()
		_ = s.http.Shutdown(timeout) // this cuts off responses that are still in progress
	})
	err := s.http.Serve(s.listener)
	if isServing() {
		return fmt.Errorf("serving at %s: %w", s.Address(), err)
	}
	<-finished
	return nil
}

// errorLog logs the errors of net/http. It logs failed handshakes only at level 4,
// because anyone can cause them at any rate.
type errorLog struct {
	logger klog.Logger
}

func (l errorLog) Write(message []byte) (int, error) {
	text := string(bytes.TrimSpace(message))
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		l.logger.V(4).Info("TLS handshake failed", "message", text)
	} else {
		l.logger.Error(nil, "HTTP server error", "message", text)
	}
	return len(message), nil
}

// ControllerHealth serves a controller's health. /healthz reports it as alive unless it still
// leads after its Lease has expired, which the watchdog detects. /readyz reports it as ready
// from the time its caches have synced, leader or not, until ctx is done.
//
// The code is 200 if all checks pass, else 500 with the names of the failed checks. As in
// Kubernetes' own components, ?verbose lists the checks, ?exclude=NAME excludes one, and
// /healthz/NAME or /readyz/NAME runs a single check and reports why it fails.
func ControllerHealth(ctx context.Context, watchdog healthz.HealthChecker, filled func() bool) http.Handler {
	caches := healthz.NamedCheck("caches", func(*http.Request) error {
		if !filled() {
			return errors.New("the caches are not filled yet; the log says what the controller is waiting for")
		}
		return nil
	})
	mux := http.NewServeMux()
	healthz.InstallHandler(mux, healthz.PingHealthz, watchdog)
	healthz.InstallReadyzHandler(mux, healthz.PingHealthz, caches, healthz.NewShutdownHealthz(ctx.Done()))
	return mux
}

// MetricsHandler serves /metrics with a handler and, with profiling, /debug/pprof/ as
// net/http/pprof does, for requests that the gate lets through. It responds to other paths
// with 404, without asking the API server.
func MetricsHandler(gate *Gate, metrics http.Handler, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", gate.Guard(metrics))
	if profiling {
		for path, handler := range profiles() {
			mux.Handle("GET /debug/pprof/"+path, gate.Guard(handler))
		}
	}
	return mux
}

// profiles returns the handlers below /debug/pprof/ by path. Each path has its own handler,
// because the gate checks the permission by path: otherwise anyone with a token could cause
// reviews for any number of paths.
func profiles() map[string]http.Handler {
	handlers := map[string]http.Handler{
		"{$}":     http.HandlerFunc(pprof.Index),
		"cmdline": http.HandlerFunc(pprof.Cmdline),
		"profile": http.HandlerFunc(pprof.Profile),
		"symbol":  http.HandlerFunc(pprof.Symbol),
		"trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, profile := range runtimepprof.Profiles() {
		handlers[profile.Name()] = pprof.Handler(profile.Name())
	}
	return handlers
}
