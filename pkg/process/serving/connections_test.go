// SPDX-License-Identifier: Apache-2.0

// Tests of the bounds on connections.

package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Strangers open connections and are silent.
func TestStrangersDoNotKeepAScraperOut(t *testing.T) {
	inNetwork(t, metrics(), nil, func(t *testing.T, n *network) {
		silent := n.dialAll(300)
		if got := countOpen(silent); got != maxConnections {
			t.Errorf("%d connections are open, want %d", got, maxConnections)
		}
		scraper := n.dial()
		for range 2 { // after the first, its connection stays
			if code := ask(t, scraper, "/metrics", "p"); code != http.StatusOK {
				t.Fatalf("The scraper gets %d, want %d", code, http.StatusOK)
			}
			n.dialAll(300)
		}
	})
}

// A displaced connection may belong to a client that does not read: nothing waits for it.
func TestAllowedConnectionsAreBounded(t *testing.T) {
	secure, err := SelfSigned()
	must(t, err)
	inNetwork(t, metrics(), secure, func(t *testing.T, n *network) {
		start := time.Now()
		get := func(client net.Conn) int {
			return ask(t, tls.Client(client, &tls.Config{InsecureSkipVerify: true}), "/metrics", "p")
		}
		allowed := n.dialAll(maxConnections)
		for _, client := range allowed {
			get(client)
		}
		another := n.dial()
		if code := get(another); code != http.StatusOK || time.Since(start) > 0 {
			t.Errorf("A new client gets %d after %v, want %d at once", code, time.Since(start), http.StatusOK)
		}
		if got := countOpen(allowed); got != maxConnections-1 || !isClosed(allowed[0].gone) {
			t.Errorf("%d connections are open, want %d: all but the oldest", got, maxConnections-1)
		}
		for _, client := range append(allowed, another) {
			client.Close() // else the stop waits for it to read
		}
		synctest.Wait()
	})
}

func TestHowLongAConnectionStaysOpen(t *testing.T) {
	secure, err := SelfSigned()
	must(t, err)
	send := func(client net.Conn, text string) {
		go discard(client)
		_, _ = io.WriteString(client, text)
	}
	asks := func(path, token string) func(*testing.T, net.Conn, *tls.Conn) {
		return func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			ask(t, secure, path, token)
			discard(secure)
		}
	}
	tests := []struct {
		what string
		does func(t *testing.T, plain net.Conn, secure *tls.Conn)
		want time.Duration
	}{
		{"sends nothing", func(*testing.T, net.Conn, *tls.Conn) {}, readTimeout},
		{"sends a part of a handshake", func(_ *testing.T, plain net.Conn, _ *tls.Conn) {
			_, _ = plain.Write([]byte{22, 3, 1})
		}, readTimeout},
		{"sends nothing after a late handshake", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			<-time.After(readTimeout - 1)
			send(secure, "")
		}, 2*readTimeout - 1},
		{"sends a header forever", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			send(secure, "GET /metrics HTTP/1.1\r\n")
			for range 100 {
				<-time.After(readTimeout / 4)
				_, _ = io.WriteString(secure, "More: of it\r\n")
			}
		}, readTimeout},
		{"sends a body forever", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			send(secure, "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n")
			for range 100 {
				<-time.After(readTimeout / 4)
				_, _ = io.WriteString(secure, "more")
			}
		}, readTimeout},
		{"does not read the answer", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			must(t, secure.HandshakeContext(t.Context()))
			_, _ = io.WriteString(secure, "GET / HTTP/1.1\r\nHost: here\r\n\r\n")
		}, writeTimeout + 5*time.Second}, // crypto/tls waits this long to send its close_notify
		{"is not let in", asks("/metrics", "x"), 0},
		{"lacks the permission", asks("/metrics", "v"), 0},
		{"requests an unknown path", asks("/", "p"), 0},
		{"requests OPTIONS *", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			send(secure, "OPTIONS * HTTP/1.1\r\nHost: here\r\n\r\n")
		}, 0},
		{"is let in", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			ask(t, secure, "/metrics", "p")
			<-time.After(time.Minute)
			if code := ask(t, secure, "/metrics", "p"); code != http.StatusOK {
				t.Errorf("A minute later the client gets %d, want %d", code, http.StatusOK)
			}
			discard(secure)
		}, time.Minute + idleTimeout},
		{"is let in, and reads slowly", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			_, _ = io.WriteString(secure, "GET /metrics HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer p\r\nConnection: close\r\n\r\n")
			<-time.After(time.Minute)
			if answer, _ := io.ReadAll(secure); !strings.Contains(string(answer), "the secret") {
				t.Errorf("The client gets %q", answer)
			}
		}, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			inNetwork(t, metrics(), secure, func(t *testing.T, n *network) {
				client := n.dial()
				start := time.Now()
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() { test.does(t, client, tls.Client(client, &tls.Config{InsecureSkipVerify: true})) })
				<-client.gone
				stayed := time.Since(start)
				if test.what == "sends a body forever" && stayed == test.want+500*time.Millisecond {
					stayed = test.want // net/http of Go 1.26.11 gives the client this long to read the response
				}
				if stayed != test.want {
					t.Errorf("The connection was closed after %v, want %v", stayed, test.want)
				}
			})
		})
	}
}

// network is a listener whose clients are pipes, so that testing/synctest controls their
// time.
type network struct {
	incoming chan net.Conn
	closed   chan struct{}
	stop     func() // stops the server
}

// remote is the server's end of a connection.
type remote struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (r *remote) Close() error {
	r.closed()
	return r.Conn.Close()
}

// client is the client's end of a connection.
type client struct {
	net.Conn
	// gone is closed when the server closes the connection.
	gone chan struct{}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.incoming:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	if !isClosed(n.closed) {
		close(n.closed)
	}
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

func (n *network) dial() client {
	end, server := net.Pipe()
	c := client{Conn: end, gone: make(chan struct{})}
	n.incoming <- &remote{server, sync.OnceFunc(func() { close(c.gone) })}
	synctest.Wait()
	return c
}

func (n *network) dialAll(count int) []client {
	clients := make([]client, count)
	for i := range clients {
		clients[i] = n.dial()
	}
	return clients
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func countOpen(clients []client) int {
	return len(slices.DeleteFunc(slices.Clone(clients), func(c client) bool { return isClosed(c.gone) }))
}

// metrics returns the handler of a server that uses an authority as its API server.
func metrics() http.Handler {
	return MetricsHandler(NewGate(newAuthority().client), secret, false)
}

// inNetwork runs a test with a server in a bubble, which controls the server's time.
func inNetwork(t *testing.T, handler http.Handler, secure *tls.Config, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { inNetworkOf(t, handler, secure, test) })
}

// inNetworkOf is inNetwork in a bubble.
func inNetworkOf(t *testing.T, handler http.Handler, secure *tls.Config, test func(t *testing.T, n *network)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	n := &network{incoming: make(chan net.Conn), closed: make(chan struct{}), stop: cancel}
	server := newServer(n, handler, secure)
	go func() { ended <- server.Serve(ctx) }()
	test(t, n)
	cancel()
	must(t, <-ended)
}

// ask sends a request and returns the code of the response, or 0 if there is none.
func ask(t *testing.T, client net.Conn, path, token string) int {
	t.Helper()
	text := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
	if _, err := io.WriteString(client, text); err != nil {
		return 0
	}
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Errorf("Reading the response's body: %v", err)
	}
	return response.StatusCode
}

// discard reads whatever the server sends, as a kernel buffers a short response.
func discard(client net.Conn) {
	_, _ = io.Copy(io.Discard, client)
}

// A flood must not make a scrape fail, even after the scraper's token has been renewed, nor
// make the controller flood the API server.
func TestAFloodHarmsNobody(t *testing.T) {
	const (
		seconds, perSecond = 8 * 60, 25 // longer than any verdict is cached
		bound              = 100 + reviewsAtOnce + reviewsPerSecond*seconds
	)
	addressOf := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250) }
	for _, test := range []struct {
		what       string
		attackers  int
		authentic  bool   // the tokens belong to users without permission
		scraper    string // its address
		rotated    string // its token in the second half of the flood
		wantRefuse int
	}{
		{"made-up tokens of one Pod", 1, false, "10.1.0.1", "p2", http.StatusUnauthorized},
		{"made-up tokens of 1000 Pods", 1000, false, "10.1.0.1", "p2", http.StatusUnauthorized},
		{"made-up tokens, and a proxy before all clients", 1, false, addressOf(0), "p", http.StatusUnauthorized},
		{"users without permission", 100, true, "10.1.0.1", "p2", http.StatusForbidden},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				authority.knowsAll = test.authentic
				handler := NewGate(authority.client).Guard(secret)
				from := func(address, token string) *httptest.ResponseRecorder {
					request := request(t, http.MethodGet, "/metrics", token)
					request.RemoteAddr = address + ":40000"
					return send(handler, request)
				}
				scrapes, floods := map[int]int{}, map[int]int{}
				token := "p"
				for i := range seconds * perSecond {
					answer := from(addressOf(i%test.attackers), fmt.Sprintf("token-%d", i))
					floods[answer.Code]++
					if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
						t.Fatal("429 without Retry-After")
					}
					if i == seconds*perSecond/2 {
						token = test.rotated
					}
					if i%(30*perSecond) == 0 { // right after another client has used up the budget
						scrapes[from(test.scraper, token).Code]++
					}
					<-time.After(time.Second / perSecond)
				}
				if scrapes[http.StatusOK] != seconds/30 {
					t.Errorf("The scraper gets %v, want %d only", scrapes, http.StatusOK)
				}
				if floods[test.wantRefuse]+floods[http.StatusTooManyRequests] != seconds*perSecond || floods[test.wantRefuse] == 0 {
					t.Errorf("The others get %v, want %d within the budget, and %d", floods, test.wantRefuse, http.StatusTooManyRequests)
				}
				if got := authority.asked(); got[0]+got[1] > bound {
					t.Errorf("The flood caused %v reviews, want at most %d", got, bound)
				}
			})
		})
	}
}
