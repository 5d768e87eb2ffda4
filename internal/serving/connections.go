// SPDX-License-Identifier: Apache-2.0

// The bounds on a server's connections, and which clients keep theirs.

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
	// maxConnections bounds the memory that all clients together can take: 2 MiB if they
	// send nothing, 12 MiB if each sends as many headers as allowed. A scraper needs one
	// connection.
	maxConnections = 50
	// reservedConnections is the number of connections from a known address that are
	// trusted from the start.
	reservedConnections = 4
	// The rate at which a client may connect. Each connection can cost a TLS handshake,
	// about 1 ms.
	connectionsPerSecond = 20
	connectionsAtOnce    = 100
)

// boundedListener bounds the number of open connections. Anybody can connect, and if the
// listener refused connections above the limit, one client could lock out all others.
// Instead, a new connection displaces the oldest one of the client that has the most. So
// a client displaces only its own connections. If there are more clients than
// connections, the oldest are displaced, and a client that sends its request at once is
// answered before that happens.
//
// A trusted connection is displaced only if all are trusted. A connection is trusted once
// the gate let a request on it through. So are the first few connections from an address
// from which such a request came lately, so that a scraper can reconnect during a flood.
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

// connection is a connection that a boundedListener accepted.
type connection struct {
	net.Conn
	listener *boundedListener
	origin   origin
	trusted  bool // guarded by listener.mu
}

// Accept returns the next connection that is admitted, and closes those that are not.
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

// mayConnect reports whether a client is within its rate. A known address has its own
// rate, which other addresses in its network can't use up.
func (l *boundedListener) mayConnect(from origin) bool {
	if l.known.has(from.address) {
		return l.rates.take(from.address)
	}
	return l.rates.take(from.network)
}

// admit adds a connection, closes the one that it displaces, if any, and reports whether
// the new one stays open.
func (l *boundedListener) admit(c *connection) bool {
	displaced := l.add(c)
	if displaced != nil {
		displaced.Close()
	}
	return displaced != c
}

// add adds a connection and returns the one to close, if there are too many.
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

// mostDispensable returns the oldest connection of the client that has the most. It
// considers trusted connections only if there are no others.
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

// Close closes a connection and removes it from those of its listener.
func (c *connection) Close() error {
	l := c.listener
	l.mu.Lock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the sending side, so that the client can read the response before the
// connection is closed. net/http calls it if the client may still be sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connectionKey is the key of the connection in a request's context.
type connectionKey struct{}

// withConnection adds a connection to the context of its requests. It is an
// http.Server.ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// closeUnlessTrusted closes a connection after its first response, unless the handler
// trusts the client. So a stranger can't keep a connection open.
func closeUnlessTrusted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		handler.ServeHTTP(w, r)
	})
}

// trust marks a request's connection as trusted and its address as known. The client
// keeps the connection and gets more time to read the response.
func trust(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("Connection")
	// The error means that there is no connection, as in a test.
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
