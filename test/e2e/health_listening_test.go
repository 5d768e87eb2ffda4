// SPDX-License-Identifier: Apache-2.0

// The ports on which the controller listens.

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestNoPortIsOpenByDefault(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this test reads the ports of a process from /proc")
	}
	ns := newNamespace(t)
	quiet := ns.startController(t)
	quiet.awaitLog(t, "Starting workers", 1)
	if got := quiet.listening(t); len(got) > 0 {
		t.Errorf("Without flags it listens on %v", got)
	}

	open := newNamespace(t).startController(t, "-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort)
	open.awaitLog(t, "Starting workers", 1)
	want := []string{open.servedAt(t, "health"), open.servedAt(t, "metrics")}
	slices.Sort(want)
	if got := open.listening(t); !slices.Equal(got, want) {
		t.Errorf("It listens on %v, want %v", got, want)
	}
}

func TestAnAddressInUseIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{"-health-probe-bind-address", "-metrics-bind-address"} {
		p := startController(t, "-kubeconfig="+cluster.account.kubeconfig, flag+"="+taken.Addr().String())
		if code := p.exitCode(t); code != exitFailure {
			t.Errorf("%s: the exit code is %d, want %d", flag, code, exitFailure)
		}
		want := flag + "=" + taken.Addr().String() + ": "
		if text := p.log.String(); !strings.Contains(text, want) || !strings.Contains(text, "address already in use") {
			t.Errorf("The log does not say what is wrong: %s", text)
		}
	}
}

// listening returns the addresses on which a process listens.
func (p *process) listening(t *testing.T) []string {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(p.ID()))
	sockets := map[string]bool{}
	descriptors, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(filepath.Join(proc, "fd", descriptor.Name()))
		if err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}
	if len(sockets) == 0 {
		t.Fatal("The process has no socket, not even to the API server")
	}
	var addresses []string
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		content, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			continue // without IPv6
		}
		for line := range strings.Lines(string(content)) {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			fields := strings.Fields(line)
			if len(fields) < 10 || !sockets[fields[9]] || !strings.HasSuffix(fields[2], ":0000") {
				continue
			}
			addresses = append(addresses, readAddress(t, fields[1]))
		}
	}
	slices.Sort(addresses)
	return addresses
}

// readAddress parses an address of /proc/net: hexadecimal, with the bytes of an IPv4
// address in reverse order.
func readAddress(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if len(host) == 8 {
		var b [4]byte
		if _, err := fmt.Sscanf(host, "%02x%02x%02x%02x", &b[3], &b[2], &b[1], &b[0]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		host = net.IP(b[:]).String()
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10))
}
