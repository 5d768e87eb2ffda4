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

// Package proxy stands between a controller and its API server, sees every
// request, and does to some of them what networks, servers and crashes do.
//
// It puts the credentials of an account in the place of those that the
// controller sends. Every response is asked for as JSON, so that the events
// of a watch can be told apart and held, dropped or sent twice.
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

// Proxy is one controller's way to the API server.
type Proxy struct {
	// URL is where the controller finds the API server.
	URL string

	server    *httptest.Server
	target    *url.URL
	transport http.RoundTripper
	namespace string
	streams   *streams

	// life ends with the proxy, and with it what is still to be forwarded.
	life context.Context //nolint:containedctx // the proxy is a server: this is how long it serves
	end  context.CancelFunc
	late sync.WaitGroup

	mu    sync.Mutex
	rules []*rule
	calls []*Call
	// writes counts the writes that Call.Write numbers.
	writes  int
	changed chan struct{}
}

// A Rule is asked about each request; it returns what to do with it, or nil to
// let the next rule decide.
type Rule func(*Call) Fault

// A Fault handles a request in the API server's place.
type Fault func(*Exchange)

type rule struct{ decide Rule }

// New starts a proxy to the API server of config, with its credentials. If
// namespace is not empty, requests for the Foos and Deployments of all
// namespaces become requests for those of that one.
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
	// With TLS, for client-go sends no credentials without.
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are cut
	p.server.StartTLS()
	p.URL = p.server.URL
	return p, nil
}

// Certificate is the PEM of what the proxy's URL is trusted by.
func (p *Proxy) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Close ends all requests, and returns when none is left.
func (p *Proxy) Close() {
	p.end()
	p.streams.endAll("")
	p.server.CloseClientConnections()
	p.server.Close()
	p.late.Wait()
}

// Use adds a rule, ahead of those there are, and returns what removes it.
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

// Down cuts every request and every watch, until up is called.
func (p *Proxy) Down() (up func()) {
	up = p.Use(func(*Call) Fault { return Cut })
	p.streams.endAll("")
	return up
}

// Calls returns what has been asked so far, in order.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]Call, len(p.calls))
	for i, c := range p.calls {
		calls[i] = *c
	}
	return calls
}

// Writes returns how many writes Call.Write has numbered.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// CountAnew makes the next write number 1.
func (p *Proxy) CountAnew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = 0
}

// Changed returns a channel that is closed when the next request arrives or is
// answered.
func (p *Proxy) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Await waits until found returns true of the calls so far.
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

// note changes a call under the lock, and tells those who wait.
func (p *Proxy) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// admit records a request and returns what to do with it.
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
		panic(http.ErrAbortHandler) // the client has gone
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
