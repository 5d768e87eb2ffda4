// SPDX-License-Identifier: Apache-2.0

// Tests of reserved ports.

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// listenShared listens as the components do.
func listenShared(port int) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var err error
		return errors.Join(conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}), err)
	}}
	return config.Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func TestAComponentListensOnAHeldPort(t *testing.T) {
	hold, err := holdPort(0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.release()
	listener, err := listenShared(hold.port)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("the socket that holds the port accepts connections: %v", err)
	}
	_ = conn.Close()
}

func TestNobodyElseGetsAHeldPort(t *testing.T) {
	free, err := holdPort(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("any free one", func(t *testing.T) { checkHeld(t, free) })
	free.release()
	chosen, err := holdPort(free.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a chosen one", func(t *testing.T) { checkHeld(t, chosen) })
	chosen.release()
}

func checkHeld(t *testing.T, hold *portHold) {
	t.Helper()
	if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", hold.port)); err == nil {
		_ = listener.Close()
		t.Error("another program can listen on the port")
	}
	if second, err := holdPort(hold.port); err == nil {
		second.release()
		t.Error("another cluster can hold the port")
	} else if !strings.Contains(err.Error(), "is in use") {
		t.Errorf("the error for another cluster is: %v", err)
	}
}

func TestAPortInUseIsRefused(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	_, _, err = holdPorts(Ports{Scheduler: port})
	want := fmt.Sprintf("-kube-scheduler-port: port %d is in use", port)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEachListenerGetsAPort(t *testing.T) {
	got, holds, err := holdPorts(Ports{})
	if err != nil {
		t.Fatal(err)
	}
	defer holds.release()
	seen := map[int]string{}
	for _, p := range got.named() {
		if *p.port == 0 || seen[*p.port] != "" {
			t.Errorf("%s got port %d, as %s did", p.flag, *p.port, seen[*p.port])
		}
		seen[*p.port] = p.flag
	}
}

// A server that closes its connections leaves its port in TIME_WAIT, which must not block
// a restart.
func TestAPortIsFreeAgainAtOnce(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	_, _ = client.Read(make([]byte, 1)) // the server's end of the connection has arrived
	_ = client.Close()
	_ = listener.Close()

	hold, err := holdPort(listener.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	hold.release()
}
