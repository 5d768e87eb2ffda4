// SPDX-License-Identifier: Apache-2.0

// Tests of the bounds on connections.

package serving

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Strangers open connections and are silent, from one address or a thousand.
func TestStrangersDoNotKeepAScraperOut(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		silent := n.dialAll(300)
		if got := countOpen(silent); got != maxConnections {
			t.Errorf("%d connections are open, want %d", got, maxConnections)
		}
		scraper := n.dial("10.1.0.1")
		for range 2 { // after the first, its connection stays
			if code := request(t, scraper, "/metrics", "p"); code != http.StatusOK {
				t.Fatalf("The scraper gets %d, want %d", code, http.StatusOK)
			}
			n.dialAll(300)
		}
	})
}

func TestAllowedConnectionsAreBounded(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		allowed := n.dialAll(maxConnections)
		for _, client := range allowed {
			request(t, client, "/metrics", "p")
		}
		if code := request(t, n.dial("10.1.0.1"), "/metrics", "p"); code != http.StatusOK {
			t.Errorf("A new client gets %d, want %d", code, http.StatusOK)
		}
		if got := countOpen(allowed); got != maxConnections-1 || allowed[0].isOpen() {
			t.Errorf("%d connections are open, want %d: all but the oldest", got, maxConnections-1)
		}
	})
}

func TestHowLongAConnectionStaysOpen(t *testing.T) {
	certificate, err := SelfSigned()
	must(t, err)
	send := func(client net.Conn, text string) {
		go discard(client)
		_, _ = io.WriteString(client, text)
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
		{"sends a header for ever", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			send(secure, "GET /metrics HTTP/1.1\r\n")
			for range 100 {
				<-time.After(readTimeout / 4)
				_, _ = io.WriteString(secure, "More: of it\r\n")
			}
		}, readTimeout},
		{"sends a body for ever", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
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
		{"is not let in", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			request(t, secure, "/metrics", "x")
			discard(secure)
		}, 0},
		{"lacks the permission", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			request(t, secure, "/metrics", "v")
			discard(secure)
		}, 0},
		{"asks for an unknown path", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			request(t, secure, "/", "p")
			discard(secure)
		}, 0},
		{"asks for OPTIONS *", func(_ *testing.T, _ net.Conn, secure *tls.Conn) {
			send(secure, "OPTIONS * HTTP/1.1\r\nHost: here\r\n\r\n")
		}, 0},
		{"is let in", func(t *testing.T, _ net.Conn, secure *tls.Conn) {
			request(t, secure, "/metrics", "p")
			<-time.After(time.Minute)
			if code := request(t, secure, "/metrics", "p"); code != http.StatusOK {
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
			inNetwork(t, certificate.Config(), func(t *testing.T, n *network) {
				client := n.dial("10.0.0.1")
				start := time.Now()
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() { test.does(t, client, tls.Client(client, &tls.Config{InsecureSkipVerify: true})) })
				<-client.gone
				stayed := time.Since(start)
				if test.what == "sends a body for ever" && stayed == test.want+500*time.Millisecond {
					stayed = test.want // net/http of Go 1.26.11 gives the client this long to read the answer
				}
				if stayed != test.want {
					t.Errorf("The connection was closed after %v, want %v", stayed, test.want)
				}
			})
		})
	}
}
