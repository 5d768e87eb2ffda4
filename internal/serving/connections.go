// SPDX-License-Identifier: Apache-2.0

// The bound on a server's connections, and which clients keep theirs.

package serving

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// maxConnections bounds the memory that all clients together can take: 12 MiB if each sends
// as many headers as allowed. A scraper needs one connection.
const maxConnections = 50

// boundedListener bounds the number of open connections. Anybody can connect, and if the
// listener refused connections above the limit, one client could lock out all others.
// Instead, a new connection displaces the oldest one on which no request was allowed: a
// client that sends its request at once is answered before that happens. If a request was
// allowed on all of them, the oldest goes.
type boundedListener struct {
	net.Listener

	mu   sync.Mutex
	open []*connection // oldest first
}

// connection is a connection that a boundedListener accepted.
type connection struct {
	net.Conn
	listener *boundedListener
	trusted  bool // guarded by listener.mu
}

// Accept returns the next connection, and closes one if there are too many.
func (l *boundedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, listener: l}
	if displaced := l.add(c); displaced != nil {
		displaced.Close()
	}
	return c, nil
}

// add adds a connection, and returns the one that it displaces, or nil.
func (l *boundedListener) add(c *connection) (displaced *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxConnections {
		oldest := slices.IndexFunc(l.open, func(other *connection) bool { return !other.trusted })
		displaced = l.open[max(0, oldest)]
	}
	l.open = append(l.open, c)
	return displaced
}

// Close implements net.Conn.
func (c *connection) Close() error {
	l := c.listener
	l.mu.Lock()
	l.open = slices.DeleteFunc(l.open, func(other *connection) bool { return other == c })
	l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection so that the client can still read the last
// response: the operating system discards what was not read yet when Close is called.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// withConnection is an http.Server's ConnContext: it lets trust find the connection.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// closeUnlessTrusted closes a connection after its first response, unless trust is called
// for the request.
func closeUnlessTrusted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		handler.ServeHTTP(w, r)
	})
}

// trust keeps a connection for further requests, gives the answer time, and makes the
// connection the last to be displaced.
func trust(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("Connection")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(trustedWriteTimeout))
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.trusted = true
	}
}

const (
	// The rate of reviews, of both kinds, for all strangers together, and for all that are
	// known by their address. A scraper needs one or two a minute, a reader of profiles a
	// few at once.
	reviewsPerSecond = 10
	reviewsAtOnce    = 20

	// knownFor is how long a caller counts as known after its last request that was
	// allowed. It is longer than any usual scrape interval.
	knownFor = time.Hour
	// maxKnown is more than a controller's callers, and takes less than 1 MiB.
	maxKnown = 1000
)

// caller identifies who makes a request. Only the hash of the token is kept.
type caller struct {
	token   [sha256.Size]byte
	address netip.Addr
}

// callerOf returns the caller with a token at HOST:PORT. All invalid addresses are one.
func callerOf(token, remote string) caller {
	from, _ := netip.ParseAddrPort(remote)
	return caller{token: sha256.Sum256([]byte(token)), address: from.Addr().Unmap().WithZone("")}
}

// reviewBudget bounds the reviews that callers can cause. Anybody can send made-up tokens
// at any rate, so with one limit for all they could keep the scrapers out. A caller that
// was allowed lately therefore does not share the limit of strangers. It is recognized by
// its token, even behind a proxy that all callers use; and by its address, so that it can
// replace a token that expires. A known token needs no limit: its verdicts are cached, and
// there are few paths.
type reviewBudget struct {
	known                  *cache.LRUExpireCache
	ofAddresses, strangers flowcontrol.PassiveRateLimiter
}

func newReviewBudget() *reviewBudget {
	return &reviewBudget{
		known:       cache.NewLRUExpireCache(maxKnown),
		ofAddresses: flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
		strangers:   flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
	}
}

// take takes one review from the caller's budget, and reports whether there was one left.
func (b *reviewBudget) take(who caller) bool {
	if _, known := b.known.Get(who.token); known {
		return true
	}
	if _, known := b.known.Get(who.address); known {
		return b.ofAddresses.TryAccept()
	}
	return b.strangers.TryAccept()
}

// remember makes a caller known.
func (b *reviewBudget) remember(who caller) {
	b.known.Add(who.token, nil, knownFor)
	b.known.Add(who.address, nil, knownFor)
}
