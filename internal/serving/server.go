/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package serving answers over HTTP what an administrator asks of a process:
// is it well, and what has it been doing.
//
// Health is told to everybody (ControllerHealth). Metrics and profiles are told to
// whom the API server allows it (Gate), over TLS (Certificate). Nothing here
// knows what the process is for.
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
	"time"

	"k8s.io/klog/v2"
)

const (
	// A client has this long for the TLS handshake, and then for its request.
	readTimeout = 5 * time.Second
	// writeTimeout bounds an answer from when there is a request: two reviews,
	// and a refusal, which is short.
	writeTimeout = 10 * time.Second
	// trustedWriteTimeout is for who is let in, from then on. The handlers of
	// net/http/pprof set their own where they take long.
	trustedWriteTimeout = 2 * time.Minute
	// idleTimeout is longer than the usual time between two scrapes, so that
	// they share a connection. Who is not trusted has none: see trust.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes is room for any bearer token.
	maxHeaderBytes = 16 << 10
	// shutdownTimeout bounds how long a stop waits for answers under way.
	shutdownTimeout = 2 * time.Second
)

// Server is an HTTP server that has its address and may answer there.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen takes an address, [HOST]:PORT, for a handler. From then on clients can
// connect; they are answered once Serve is called. With a secure configuration
// it speaks TLS. The error says what is wrong with the address.
//
// Anybody can connect, so the connections are bounded (boundedListener), silent
// clients are given little time, and each answer ends its connection unless a
// Gate lets the request through.
//
// HTTP/2 is off: a scraper sends one request at a time and gains nothing by it,
// while each stream that is opened and reset costs the server work
// (CVE-2023-44487 and its successors). So a connection is one request at a time,
// and a bound on connections bounds it all.
func Listen(address string, handler http.Handler, secure *tls.Config) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return newServer(listener, handler, secure), nil
}

func newServer(listener net.Listener, handler http.Handler, secure *tls.Config) *Server {
	listener = newBoundedListener(listener)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &Server{listener: listener, http: &http.Server{
		Handler:        closeUnlessTrusted(handler),
		Protocols:      protocols,
		ConnContext:    withConnection,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// It would answer "OPTIONS *" in place of the handler.
		DisableGeneralOptionsHandler: true,
	}}
}

// Address is where the server listens, with the port that was chosen for port 0.
func (s *Server) Address() string {
	return s.listener.Addr().String()
}

// Close gives up the address of a server that does not serve.
func (s *Server) Close() error {
	return s.listener.Close()
}

// Serve answers until ctx is done, then lets the answers under way finish, for
// two seconds at most. It returns an error only if it stopped before that.
func (s *Server) Serve(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	s.http.ErrorLog = log.New(errorLog{logger}, "", 0)
	// An answer under way outlives ctx.
	s.http.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }

	serving, stopped := context.WithCancel(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		<-serving.Done()
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if s.http.Shutdown(timeout) != nil {
			s.http.Close()
		}
	}()
	err := s.http.Serve(s.listener)
	stopped()
	<-finished
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving at %s: %w", s.Address(), err)
	}
	return nil
}

// errorLog is where net/http writes what went wrong. Anybody can cause failed
// handshakes, at any rate, so these do not belong into a log by default.
type errorLog struct {
	logger klog.Logger
}

func (l errorLog) Write(message []byte) (int, error) {
	text := string(bytes.TrimSpace(message))
	if bytes.HasPrefix(message, []byte("http: TLS handshake error")) {
		l.logger.V(4).Info("Handshake failed", "message", text)
	} else {
		l.logger.Error(nil, "HTTP server", "message", text)
	}
	return len(message), nil
}
