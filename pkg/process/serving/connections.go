// SPDX-License-Identifier: Apache-2.0

// The bound on a server's connections, and the choice of connections to keep.

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// maxConnections bounds the memory that all clients together can take: 12 MiB if each sends
// as many headers as allowed. A scraper needs one connection.
const maxConnections = 50

// connections bounds the number of a server's open connections. Anyone can connect, and if
// the server refused connections above the limit, one client could lock out all others.
// Instead, a new connection displaces the oldest one on which no request was allowed: a
// client that sends its request at once gets a response before that happens. If a request
// was allowed on all connections, the oldest is closed.
type connections struct {
	mu      sync.Mutex
	open    []net.Conn // oldest first
	trusted sets.Set[net.Conn]
}

// track is an http.Server's ConnState. It closes a connection if a new one exceeds the limit.
func (o *connections) track(c net.Conn, state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(o.open) >= maxConnections {
			oldest := slices.IndexFunc(o.open, func(other net.Conn) bool { return !o.trusted.Has(other) })
			displaced := o.open[max(0, oldest)]
			o.remove(displaced)
			if secure, ok := displaced.(*tls.Conn); ok {
				displaced = secure.NetConn() // its own Close waits for a client that does not read
			}
			displaced.Close()
		}
		o.open = append(o.open, c)
	case http.StateClosed:
		o.remove(c)
	}
}

func (o *connections) remove(c net.Conn) {
	o.open = slices.DeleteFunc(o.open, func(other net.Conn) bool { return other == c })
	o.trusted.Delete(c)
}

type trustKey struct{}

// withTrust is an http.Server's ConnContext. It lets trust find the connection.
func (o *connections) withTrust(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, trustKey{}, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.trusted.Insert(c)
	})
}

// closeUnlessTrusted closes a connection after its first response, unless trust is called
// for the request.
func closeUnlessTrusted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		handler.ServeHTTP(w, r)
	})
}

// trust keeps a connection for further requests, extends the time for the response, and
// makes the connection the last to be displaced.
func trust(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("Connection")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(trustedWriteTimeout))
	if trusted, ok := r.Context().Value(trustKey{}).(func()); ok {
		trusted()
	}
}
