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

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// maxConnections bounds what all clients together can make the process
	// hold: 2 MiB while they are silent, 12 MiB while each sends as many headers
	// as it may. A scraper needs one.
	maxConnections = 50
	// reservedConnections is how many connections an address has to itself
	// from the start while it is known.
	reservedConnections = 4
	// How many times per second a client may connect. Each can cost a TLS
	// handshake, about 1 ms.
	connectionsPerSecond = 20
	connectionsAtOnce    = 100
)

// boundedListener keeps a bounded number of connections open. Anybody can
// connect, and a limit that simply refuses the next connection would let one
// client lock out all others. So the next connection takes the place of the
// oldest one of the client that has the most. One client therefore displaces
// only itself; with more clients than connections, the oldest go, so that a
// client which asks at once is answered before its turn comes.
//
// A trusted connection does not give way to others. It is one on which the gate
// let a request through, or one of the first few of an address from which such
// a request came lately, so that a scraper can connect again during a flood.
type boundedListener struct {
	net.Listener
	rates *shares
	known recent

	mu   sync.Mutex
	open []*connection // oldest first
}

func newBoundedListener(listener net.Listener) *boundedListener {
	return &boundedListener{Listener: listener, rates: newShares(connectionsPerSecond, connectionsAtOnce), known: newRecent()}
}

// connection is one that a boundedListener has accepted.
type connection struct {
	net.Conn
	listener *boundedListener
	origin   origin
	trusted  bool // guarded by listener.mu
}

// Accept waits for the next connection that may stay, and closes the others.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: accepted, listener: l, origin: originOf(accepted.RemoteAddr().String())}
		if l.mayConnect(c.origin) && l.admit(c) {
			return c, nil
		}
		c.Close()
	}
}

// mayConnect holds a client to its rate. A known address has its own, which its
// neighbours can't use up.
func (l *boundedListener) mayConnect(from origin) bool {
	if l.known.has(from.address) {
		return l.rates.take(from.address)
	}
	return l.rates.take(from.network)
}

// admit adds a connection, closes the one whose place it takes, if there is no
// other, and reports whether the new one may stay.
func (l *boundedListener) admit(c *connection) bool {
	displaced := l.add(c)
	if displaced != nil {
		displaced.Close()
	}
	return displaced != c
}

// add returns the connection that is one too many, if any.
func (l *boundedListener) add(c *connection) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.has(c.origin.address) {
		reserved := 0
		for _, other := range l.open {
			if other.trusted && other.origin.address == c.origin.address {
				reserved++
			}
		}
		c.trusted = reserved < reservedConnections
	}
	l.open = append(l.open, c)
	if len(l.open) <= maxConnections {
		return nil
	}
	return l.mostDispensable()
}

// mostDispensable returns the oldest connection of the client that has the most,
// of those that are not trusted if there are any.
func (l *boundedListener) mostDispensable() *connection {
	candidates := slices.DeleteFunc(slices.Clone(l.open), func(c *connection) bool { return c.trusted })
	if len(candidates) == 0 {
		candidates = l.open
	}
	has := map[netip.Prefix]int{}
	for _, c := range candidates {
		has[c.origin.network]++
	}
	return slices.MaxFunc(candidates, func(a, b *connection) int { return has[a.origin.network] - has[b.origin.network] })
}

// Close closes a connection and gives up its place.
func (c *connection) Close() error {
	l := c.listener
	l.mu.Lock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends the answer, so that the client reads it before the connection
// is gone: net/http asks for it where the client may still be sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connectionKey is for the context of a request.
type connectionKey struct{}

// withConnection is http.Server.ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// closeUnlessTrusted makes each answer the last on its connection, unless the
// handler trusts the client. A stranger so has no connection to sit on.
func closeUnlessTrusted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		handler.ServeHTTP(w, r)
	})
}

// trust lets the client of a request take its time and keep its connection, and
// makes its address a known one.
func trust(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("Connection")
	// An error is that there is no connection: a test's.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(trustedWriteTimeout))
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	c.listener.known.add(c.origin.address)
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.trusted = true
}
