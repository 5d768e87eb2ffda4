// SPDX-License-Identifier: Apache-2.0

// A network of pipes, on which the tests of connections need no real time.

package serving

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// network is a listener whose clients are pipes, so that testing/synctest controls their
// time.
type network struct {
	incoming chan net.Conn
	closed   chan struct{}
}

// remote is the server's end of a connection, with the client's address.
type remote struct {
	net.Conn
	address *net.TCPAddr
	close   func()
}

func (r remote) RemoteAddr() net.Addr { return r.address }

func (r remote) Close() error {
	r.close()
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
	close(n.closed)
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

func (n *network) dial(from string) client {
	end, server := net.Pipe()
	c := client{Conn: end, gone: make(chan struct{})}
	n.incoming <- remote{server, &net.TCPAddr{IP: net.ParseIP(from), Port: 40000}, sync.OnceFunc(func() { close(c.gone) })}
	synctest.Wait()
	return c
}

// dialAll opens connections, each from another address.
func (n *network) dialAll(count int) []client {
	clients := make([]client, count)
	for i := range clients {
		clients[i] = n.dial(addressOf(i))
	}
	return clients
}

func addressOf(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250) }

// isOpen reports whether a connection is open: the server has not closed it.
func (c client) isOpen() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

func countOpen(clients []client) int {
	count := 0
	for _, client := range clients {
		if client.isOpen() {
			count++
		}
	}
	return count
}

// inNetwork runs a test with a metrics server that has an authority as its API server.
func inNetwork(t *testing.T, secure *tls.Config, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &network{incoming: make(chan net.Conn), closed: make(chan struct{})}
		server := newServer(n, MetricsHandler(NewGate(newAuthority().client), secret, false), secure)
		ended := make(chan error, 1)
		go func() { ended <- server.http.Serve(server.listener) }()
		defer func() {
			server.http.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("The server ended with %v", err)
			}
		}()
		test(t, n)
	})
}

// request sends a request and returns the code of the response, or 0 if there is none.
func request(t *testing.T, client net.Conn, path, token string) int {
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
