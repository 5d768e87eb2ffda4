// SPDX-License-Identifier: Apache-2.0

// A TCP relay whose connections can go dead.

package faults

import (
	"context"
	"io"
	"net"
	"sync"
)

// relay passes bytes to an API server and back. It can make the open connections go dead:
// what is sent over them is lost, and neither side is notified. New connections work.
type relay struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	open     []*connection
}

type connection struct {
	client, server net.Conn
	silent         chan struct{}
}

func newRelay(ctx context.Context, target string) (*relay, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, target: target}
	go r.accept()
	return r, nil
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // it is closed
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		one := &connection{client, server, make(chan struct{})}
		r.mu.Lock()
		r.open = append(r.open, one)
		r.mu.Unlock()
		go one.pass(client, server)
		go one.pass(server, client)
	}
}

// pass copies until one side ends. After the connection has gone dead, it discards what
// it reads.
func (c *connection) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.silent:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// silence makes all open connections go dead.
func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.open {
		close(one.silent)
	}
	r.open = nil
}

func (r *relay) close() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.open {
		one.client.Close()
		one.server.Close()
	}
}
