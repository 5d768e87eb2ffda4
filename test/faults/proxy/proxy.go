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
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is the connection of one controller to the API server.
type Proxy struct {
	// URL is the server address for the controller.
	URL string

	server    *httptest.Server
	accepted  *connections
	target    *url.URL
	transport http.RoundTripper
	namespace string
	// confined reports whether a request for all namespaces becomes one for the namespace.
	confined func(*Call) bool

	// life ends when the proxy is closed, and cancels what is still to be forwarded.
	life context.Context //nolint:containedctx // the lifetime of a server
	end  context.CancelFunc
	late sync.WaitGroup

	mu    sync.Mutex
	rules []*rule
	calls []*Call
	// watches are the open watches, with what ends them, and edit is applied to their events.
	watches map[*Exchange]context.CancelFunc
	edit    func(context.Context, Event) [][]byte
}

// rule is a fault for the requests for which is returns true.
type rule struct {
	is    func(*Call) bool
	fault Fault
}

// New starts a proxy to the API server of config, with its credentials. If namespace is
// not empty, requests for the Foos and Deployments of all namespaces become requests for
// those of that namespace. With HTTP/2, requests share a connection, as with an API server.
// Without it, a request can be cut off with its connection.
func New(config *rest.Config, namespace string, http2 bool) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		target: target, transport: transport, namespace: namespace, watches: map[*Exchange]context.CancelFunc{},
		confined: func(call *Call) bool { return isFooOrDeployment(call.Resource) },
	}
	p.life, p.end = context.WithCancel(context.Background())
	// With TLS, because client-go sends no credentials without it.
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // the errors are of connections that were cut
	p.accepted = &connections{Listener: p.server.Listener}
	p.accepted.dead.Store(new(atomic.Bool))
	p.server.Listener, p.server.EnableHTTP2 = p.accepted, http2
	p.server.StartTLS()
	p.URL = p.server.URL
	return p, nil
}

// Confine replaces which requests for all namespaces become requests for the proxy's. Call it
// before the first request.
func (p *Proxy) Confine(is func(*Call) bool) { p.confined = is }

// Certificate returns the proxy's certificate in PEM, for the client to trust.
func (p *Proxy) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Close ends all requests, and returns when they have ended.
func (p *Proxy) Close() {
	p.end()
	p.EndWatches("")
	p.server.CloseClientConnections()
	p.server.Close()
	p.late.Wait()
}

// Use injects a fault into the requests for which is returns true, until remove is called.
// The rule that was added last comes first.
func (p *Proxy) Use(is func(*Call) bool, fault Fault) (remove func()) {
	added := &rule{is, fault}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.Concat([]*rule{added}, p.rules)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(r *rule) bool { return r == added })
	}
}

// Calls returns all requests so far, in order.
func (p *Proxy) Calls() []*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]*Call, len(p.calls))
	for i, c := range p.calls {
		copied := *c
		calls[i] = &copied
	}
	return calls
}

// note changes a call under the lock.
func (p *Proxy) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// admit records a request and returns how to handle it.
func (p *Proxy) admit(call *Call) Fault {
	var rules []*rule
	p.note(func() {
		call.Began = time.Now()
		p.calls = append(p.calls, call)
		rules = p.rules
	})
	for _, r := range rules {
		if r.is(call) {
			return r.fault
		}
	}
	if call.IsWatch() {
		return (*Exchange).stream
	}
	return Forward
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	call := newCall(r)
	var err error
	if call.Body, err = io.ReadAll(r.Body); err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	p.admit(call)(&Exchange{Call: call, proxy: p, writer: w, request: r})
}

// connections accepts the connections of the controller. They can go dead: what is sent over
// them is lost, and neither side is notified.
type connections struct {
	net.Listener
	// dead is for the connections that are accepted from now on.
	dead atomic.Pointer[atomic.Bool]
}

type connection struct {
	net.Conn
	dead *atomic.Bool
}

// Accept returns the next connection, which Silence can make go dead.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	return &connection{accepted, c.dead.Load()}, err
}

// Read discards what it reads from a dead connection.
func (c *connection) Read(content []byte) (int, error) {
	for {
		n, err := c.Conn.Read(content)
		if err != nil || !c.dead.Load() {
			return n, err
		}
	}
}

func (c *connection) Write(content []byte) (int, error) {
	if c.dead.Load() {
		return len(content), nil
	}
	return c.Conn.Write(content)
}

// Silence makes all open connections go dead. New ones work.
func (p *Proxy) Silence() { p.accepted.dead.Swap(new(atomic.Bool)).Store(true) }

// Event is one event of a watch.
type Event struct {
	Resource string
	Type     string
	Name     string
	// Raw is the event as the API server sent it.
	Raw []byte
}

func newEvent(resource string, raw []byte) Event {
	var read struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	// An event that can't be parsed is forwarded unchanged.
	_ = json.Unmarshal(raw, &read)
	return Event{Resource: resource, Type: read.Type, Name: read.Object.Metadata.Name, Raw: raw}
}

// Times returns the event a number of times, for an edit.
func (e Event) Times(number int) [][]byte { return slices.Repeat([][]byte{e.Raw}, number) }

// EditEvents sets a function that returns what is sent instead of each event. It may wait
// before. Nil removes it.
func (p *Proxy) EditEvents(edit func(context.Context, Event) (sent [][]byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edit = edit
}

// HoldEvents holds back the events of a resource's watches, including new ones, until
// release is called.
func (p *Proxy) HoldEvents(resource string) (release func()) {
	released := make(chan struct{})
	p.EditEvents(func(ctx context.Context, event Event) [][]byte {
		if event.Resource == resource {
			select {
			case <-released:
			case <-ctx.Done():
			}
		}
		return event.Times(1)
	})
	return sync.OnceFunc(func() {
		close(released)
		p.EditEvents(nil)
	})
}

// EndWatches ends the open watches of a resource, as an API server does after a while. An
// empty resource means all.
func (p *Proxy) EndWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x, end := range p.watches {
		if resource == "" || x.Call.Resource == resource {
			end()
		}
	}
}

// stream forwards a watch, event by event.
func (x *Exchange) stream() {
	ctx, end := context.WithCancel(x.request.Context())
	defer end()
	x.proxy.note(func() { x.proxy.watches[x] = end })
	defer x.proxy.note(func() { delete(x.proxy.watches, x) })
	response, err := x.send(ctx)
	if err != nil {
		x.cut()
	}
	defer response.Body.Close()
	x.proxy.note(func() { x.Call.Code = response.StatusCode })
	x.begin(response)
	x.flush()
	events := json.NewDecoder(response.Body)
	for {
		var raw json.RawMessage
		if events.Decode(&raw) != nil {
			return
		}
		for _, sent := range x.edited(ctx, newEvent(x.Call.Resource, raw)) {
			if ctx.Err() != nil {
				return
			}
			_, _ = x.writer.Write(append(slices.Clip(sent), '\n'))
			x.flush()
		}
	}
}

// edited returns what is sent instead of an event.
func (x *Exchange) edited(ctx context.Context, event Event) [][]byte {
	x.proxy.mu.Lock()
	edit := x.proxy.edit
	x.proxy.mu.Unlock()
	if edit == nil {
		return event.Times(1)
	}
	return edit(ctx, event)
}

func (x *Exchange) flush() { _ = http.NewResponseController(x.writer).Flush() }
