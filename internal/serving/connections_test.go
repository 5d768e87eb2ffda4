// SPDX-License-Identifier: Apache-2.0

// Tests of the bounds on connections.

package serving

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOneClientDisplacesOnlyItself(t *testing.T) {
	for what, attacker := range map[string]func(i int) string{
		"a Pod":               func(int) string { return "10.0.0.1" },
		"a host with a /64":   func(i int) string { return fmt.Sprintf("2001:db8::%x", i+1) },
		"IPv4 mapped to IPv6": func(int) string { return "::ffff:10.0.0.1" },
	} {
		t.Run(what, func(t *testing.T) {
			inNetwork(t, nil, func(t *testing.T, n *network) {
				first := n.dial("10.1.0.1")
				var clients []client
				for i := range maxConnections {
					clients = append(clients, n.dial(attacker(i)))
				}
				if got := countOpen(clients); got != maxConnections-1 || clients[0].isOpen() {
					t.Errorf("%d of the attacker's connections are open, want %d: all but the oldest", got, maxConnections-1)
				}
				for who, client := range map[string]client{"Who came first": first, "Who comes last": n.dial("10.1.0.2")} {
					if code := request(t, client, "/metrics", "p"); code != http.StatusOK {
						t.Errorf("%s gets %d, want %d", who, code, http.StatusOK)
					}
				}
			})
		})
	}
}

// The attacker is a thousand Pods, each with an idle connection.
func TestManyClientsDoNotKeepAScraperOut(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		pods := addresses(1000)
		silent := n.dialAll(pods[:300]...)
		if got := countOpen(silent); got != maxConnections {
			t.Errorf("%d connections are open, want %d", got, maxConnections)
		}
		// The scraper is not known yet, but it sends its request at once.
		scraper := n.dial("10.1.0.1")
		if code := request(t, scraper, "/metrics", "p"); code != http.StatusOK {
			t.Fatalf("The scraper gets %d, want %d", code, http.StatusOK)
		}
		// Now it is known, so it may be slow.
		again := n.dialAll(repeat("10.1.0.1", reservedConnections-1)...)
		n.dialAll(pods[300:]...)
		for _, client := range append(again, scraper) {
			if code := request(t, client, "/metrics", "p"); code != http.StatusOK {
				t.Errorf("Later the scraper gets %d, want %d", code, http.StatusOK)
			}
		}
	})
}

// A known address may be a proxy's, which strangers use as well.
func TestAKnownAddressCannotTakeAllConnections(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		scraper := n.dial("10.1.0.1")
		request(t, scraper, "/metrics", "p")
		silent := n.dialAll(repeat("10.1.0.1", maxConnections-1)...)
		if code := request(t, n.dial("10.0.0.1"), "/metrics", "p"); code != http.StatusOK {
			t.Errorf("Another client gets %d, want %d", code, http.StatusOK)
		}
		if got := countOpen(silent); got != maxConnections-2 {
			t.Errorf("%d idle connections are open, want %d", got, maxConnections-2)
		}
		if code := request(t, scraper, "/metrics", "p"); code != http.StatusOK {
			t.Errorf("The scraper gets %d, want %d", code, http.StatusOK)
		}
	})
}

// The Pods of a node may share a /64.
func TestNeighboursDoNotUseUpAKnownClientsRate(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		request(t, n.dial("2001:db8::a"), "/metrics", "p")
		n.dialAll(repeat("2001:db8::b", 2*connectionsAtOnce)...)
		if code := request(t, n.dial("2001:db8::a"), "/metrics", "p"); code != http.StatusOK {
			t.Errorf("The scraper gets %d, want %d", code, http.StatusOK)
		}
	})
}

// A client that was let in is trusted, but can't take all connections either.
func TestTrustedConnectionsAreBounded(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		request(t, n.dial("10.1.0.1"), "/metrics", "p")
		holder := n.dialAll(repeat("10.0.0.1", maxConnections)...)
		for i, client := range holder[1:] {
			if code := request(t, client, "/metrics", "p"); code != http.StatusOK {
				t.Fatalf("Request %d gets %d", i, code)
			}
		}
		if n.dial("10.0.0.2").isOpen() {
			t.Error("A stranger displaces a trusted connection")
		}
		if code := request(t, n.dial("10.1.0.1"), "/metrics", "p"); code != http.StatusOK {
			t.Errorf("A known scraper gets %d, want %d", code, http.StatusOK)
		}
		if got := countOpen(holder); got != maxConnections-2 {
			t.Errorf("%d connections of the other client are open, want %d", got, maxConnections-2)
		}
	})
}

// Each new connection can cost a TLS handshake.
func TestAClientConnectsAtABoundedRate(t *testing.T) {
	inNetwork(t, nil, func(t *testing.T, n *network) {
		attack := func(connections int) (served int) {
			for range connections {
				if request(t, n.dial("10.0.0.1"), "/metrics", "") == http.StatusUnauthorized {
					served++
				}
			}
			return served
		}
		if got := attack(500); got != connectionsAtOnce {
			t.Errorf("%d of 500 connections at once are served, want %d", got, connectionsAtOnce)
		}
		if code := request(t, n.dial("10.1.0.1"), "/metrics", "p"); code != http.StatusOK {
			t.Errorf("Another client gets %d, want %d", code, http.StatusOK)
		}
		<-time.After(time.Second)
		if got := attack(500); got != connectionsPerSecond {
			t.Errorf("%d of 500 connections a second later are served, want %d", got, connectionsPerSecond)
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
