// SPDX-License-Identifier: Apache-2.0

// Reserved ports.

package cluster

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// portHold reserves a port for a component that is about to listen on it.
//
// It is a socket that is bound but does not listen, so connections are refused until the
// component listens. The component may bind the same port because both sockets have
// SO_REUSEPORT and the same user. Nobody else can, and the kernel does not assign the
// port to processes that ask for any free one. So two clusters that start at the same
// time never get the same port.
type portHold struct {
	port int
	fd   int
}

// holdPort reserves a port of 127.0.0.1: the wanted one, or any free one for 0.
func holdPort(wanted int) (_ *portHold, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	unix.CloseOnExec(fd)
	if wanted != 0 {
		// Connections of an earlier cluster that are still in TIME_WAIT must not block
		// the port.
		if err := setOption(fd, unix.SO_REUSEADDR, 1); err != nil {
			return nil, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: wanted, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, describeBindError(wanted, err)
	}
	// Sharing is enabled only after Bind, which would otherwise succeed for a port that
	// another cluster holds.
	if err := errors.Join(setOption(fd, unix.SO_REUSEADDR, 0), setOption(fd, unix.SO_REUSEPORT, 1)); err != nil {
		return nil, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	return &portHold{port: name.(*unix.SockaddrInet4).Port, fd: fd}, nil
}

func describeBindError(port int, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("port %d is in use; choose another, or 0 for any free one", port)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("port %d needs privileges; choose one above 1023, or 0 for any free one", port)
	}
	return fmt.Errorf("reserving port %d: %w", port, os.NewSyscallError("bind", err))
}

func setOption(fd, option, value int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, value))
}

func (h *portHold) release() { _ = unix.Close(h.fd) }

// portHolds holds all reserved ports of a cluster.
type portHolds []*portHold

// holdPorts reserves a port for each listener of a cluster.
func holdPorts(wanted Ports) (Ports, portHolds, error) {
	got := wanted
	var holds portHolds
	for _, want := range got.named() {
		hold, err := holdPort(*want.port)
		if err != nil {
			holds.release()
			return Ports{}, nil, fmt.Errorf("-%s: %w", want.flag, err)
		}
		*want.port = hold.port
		holds = append(holds, hold)
	}
	return got, holds, nil
}

func (h portHolds) release() {
	for _, hold := range h {
		hold.release()
	}
}
