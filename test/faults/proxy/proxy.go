// SPDX-License-Identifier: Apache-2.0

// Package proxy is a proxy between a controller and its API server. It records every
// request, and injects the faults of networks, servers and processes into some of them.
//
// It replaces the credentials that the controller sends with those of an account. It
// requests every response as JSON, so that it can separate the events of a watch, and
// hold, drop or duplicate them.
package proxy

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is the connection of one controller to the API server.
type Proxy struct {
	// URL is the server address for the controller.
	URL string

	server    *httptest.Server
	target    *url.URL
	transport http.RoundTripper
	namespace string
	streams   *streams

	// life ends when the proxy is closed, and cancels what is still to be forwarded.
	life context.Context //nolint:containedctx // the lifetime of a server
	end  context.CancelFunc
	late sync.WaitGroup

	mu    sync.Mutex
	rules []*rule
	calls []*Call
	// writes is the number of the latest write, for Call.Write.
	writes  int
	changed chan struct{}
}

// A Rule is called for each request. It returns the fault to inject, or nil to let the
// next rule decide.
type Rule func(*Call) Fault

// A Fault handles a request instead of forwarding it.
type Fault func(*Exchange)

type rule struct{ decide Rule }

// New starts a proxy to the API server of config, with its credentials. If namespace is
// not empty, requests for the Foos and Deployments of all namespaces become requests for
// those of that namespace.
func New(config *rest.Config, namespace string) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, transport: transport, namespace: namespace, changed: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	p.streams = newStreams()
	// With TLS, because client-go sends no credentials without it.
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // the errors are of connections that were cut
	p.server.StartTLS()
	p.URL = p.server.URL
	return p, nil
}

// Certificate returns the proxy's certificate in PEM, for the client to trust.
func (p *Proxy) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Close ends all requests, and returns when they have ended.
func (p *Proxy) Close() {
	p.end()
	p.streams.endAll("")
	p.server.CloseClientConnections()
	p.server.Close()
	p.late.Wait()
}

// Use adds a rule before the existing ones, and returns a function that removes it.
func (p *Proxy) Use(decide Rule) (remove func()) {
	added := &rule{decide}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append([]*rule{added}, p.rules...)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		kept := make([]*rule, 0, len(p.rules))
		for _, r := range p.rules {
			if r != added {
				kept = append(kept, r)
			}
		}
		p.rules = kept
	}
}

// Down cuts every request and every watch until up is called.
func (p *Proxy) Down() (up func()) {
	up = p.Use(func(*Call) Fault { return Cut })
	p.streams.endAll("")
	return up
}

// Calls returns all requests so far, in order.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]Call, len(p.calls))
	for i, c := range p.calls {
		calls[i] = *c
	}
	return calls
}

// Writes returns the number of the latest write.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// ResetWrites makes the next write number 1.
func (p *Proxy) ResetWrites() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = 0
}

// Changed returns a channel that is closed when the next request arrives or is answered.
func (p *Proxy) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Await waits until found returns true for the calls so far.
func (p *Proxy) Await(ctx context.Context, found func([]Call) bool) error {
	for {
		changed := p.Changed()
		if found(p.Calls()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note changes a call under the lock, and wakes those who wait for a change.
func (p *Proxy) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// admit records a request and returns the fault to inject, or nil.
func (p *Proxy) admit(call *Call) Fault {
	var rules []*rule
	p.note(func() {
		if call.IsWork() {
			p.writes++
			call.Write = p.writes
		}
		call.Began = time.Now()
		p.calls = append(p.calls, call)
		rules = p.rules
	})
	for _, r := range rules {
		if fault := r.decide(call); fault != nil {
			return fault
		}
	}
	return nil
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	call := newCall(r)
	x, err := p.newExchange(call, w, r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	fault := p.admit(call)
	switch {
	case fault != nil:
		fault(x)
	case call.Watch:
		x.stream()
	default:
		x.Forward()
		x.Reply()
	}
}
