// SPDX-License-Identifier: Apache-2.0

// A test of what thousands of connections cost the process and its other clients.

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"
)

// crowd opens thousands of idle connections as fast as it can.
type crowd struct {
	clients []string
	each    int
	secure  *tls.Config
}

// connect opens the connections and returns them without their TLS layers, whose memory
// would count as the server's.
func (c *crowd) connect(ctx context.Context, server string) []net.Conn {
	var connections []net.Conn
	for range c.each {
		for _, client := range c.clients {
			connection, err := dialer(client).DialContext(ctx, "tcp", server)
			if err != nil {
				continue
			}
			if c.secure != nil {
				// The handshake fails if the server closes the connection.
				_ = tls.Client(connection, c.secure).HandshakeContext(ctx)
			}
			connections = append(connections, connection)
		}
	}
	return connections
}

func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
}

// scrape sends a request from an address, on a new connection.
func scrape(ctx context.Context, from, url string) (int, error) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, DialContext: dialer(from).DialContext}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer p")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// memory returns the memory that this process uses after a garbage collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}

// closeGone closes the connections that the server closed, and returns the others.
func closeGone(connections []net.Conn) (open []net.Conn) {
	for _, connection := range connections {
		_ = connection.SetReadDeadline(time.Now().Add(time.Millisecond))
		var err error
		for err == nil {
			_, err = connection.Read(make([]byte, 1024))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			open = append(open, connection)
		} else {
			connection.Close()
		}
	}
	return open
}

// One client or several open as many connections as they can. The scraper and the kubelet
// must be answered meanwhile, and the process must stay small.
func TestACrowdOfConnectionsHarmsNobody(t *testing.T) {
	if probe, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0"); err != nil {
		t.Skipf("This test needs the addresses 127.0.0.0/8, as on Linux: %v", err)
	} else {
		probe.Close()
	}
	certificate, err := SelfSigned()
	must(t, err)
	insecure := &tls.Config{InsecureSkipVerify: true}
	var some []string
	for i := range 10 {
		some = append(some, fmt.Sprintf("127.0.1.%d", i+1))
	}
	metrics := MetricsHandler(NewGate(newAuthority().client), secret, false)
	tests := []struct {
		what    string
		handler http.Handler
		secure  *tls.Config
		url     string
		crowd   crowd
	}{
		{"metrics, one client", metrics, certificate.Config(), "https://%s/metrics", crowd{some[:1], 3000, insecure}},
		{"metrics, some clients", metrics, certificate.Config(), "https://%s/metrics", crowd{some, 60, insecure}},
		{"health, one client", healthHandler(nil, nil), nil, "http://%s/healthz", crowd{some[:1], 3000, nil}},
		{"health, some clients", healthHandler(nil, nil), nil, "http://%s/healthz", crowd{some, 200, nil}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			server, _ := serve(t, test.handler, test.secure)
			goroutines, before := runtime.NumGoroutine(), memory()

			scraped := func() {
				if code, err := scrape(t.Context(), "127.0.0.2", fmt.Sprintf(test.url, server.Address())); err != nil || code != http.StatusOK {
					t.Errorf("Meanwhile the scraper gets %d: %v", code, err)
				}
			}
			connected := make(chan []net.Conn)
			go func() { connected <- test.crowd.connect(t.Context(), server.Address()) }()
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			var connections []net.Conn
			for connections == nil {
				scraped()
				select {
				case connections = <-connected:
				case <-ticker.C:
				}
			}
			// Once this scrape is answered, all earlier connections have been accepted.
			scraped()

			opened := len(connections)
			connections = closeGone(connections)
			added, took := runtime.NumGoroutine()-goroutines, int64(memory())-int64(before)
			t.Logf("Of %d connections %d are open, with %d goroutines and %d KiB", opened, len(connections), added, took>>10)
			// Allow for a few that are being closed.
			if len(connections) > maxConnections+10 {
				t.Errorf("%d connections are open, want at most %d", len(connections), maxConnections)
			}
			if added > maxConnections+10 {
				t.Errorf("There are %d more goroutines, want at most one for each of %d connections", added, maxConnections)
			}
			if took > maxConnections*64<<10 {
				t.Errorf("The connections take %d KiB, want at most %d", took>>10, maxConnections*64)
			}
			for _, connection := range connections {
				connection.Close()
			}
		})
	}
}
