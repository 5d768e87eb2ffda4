// SPDX-License-Identifier: Apache-2.0

// The health endpoints: where they listen, and when a controller is healthy and ready.

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expectHealth checks the response of a health endpoint.
func (p *process) expectHealth(t *testing.T, path string, code int, says ...string) {
	t.Helper()
	got := ask(t, "http://"+p.servedAt(t, "health")+path, "")
	if got.code != code {
		t.Errorf("%s returned %d: %s, want %d", path, got.code, got.body, code)
	}
	for _, text := range says {
		if !strings.Contains(got.body, text) {
			t.Errorf("%s returned no %q, but: %s", path, text, got.body)
		}
	}
}

// TestAControllerIsReadyWhenItsCachesAreFilled checks that a controller which waits for
// the CRD already serves health and metrics. It is healthy, but not ready.
func TestAControllerIsReadyWhenItsCachesAreFilled(t *testing.T) {
	t.Parallel()
	own := newBareCluster(t)
	p := startController(t, "-kubeconfig="+newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault).kubeconfig,
		"-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort)
	p.awaitLog(t, "is not installed", 1)
	p.expectHealth(t, "/healthz", http.StatusOK)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]caches failed", "[+]shutdown ok")
	p.expectHealth(t, "/readyz/caches", http.StatusInternalServerError, "not filled")
	if got := ask(t, "https://"+p.servedAt(t, "metrics")+"/metrics", ""); got.code != http.StatusUnauthorized {
		t.Errorf("The metrics endpoint returned %d: %s", got.code, got.body)
	}

	if err := own.installCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, "http://"+p.servedAt(t, "health")+"/readyz", http.StatusOK)
	p.expectHealth(t, "/healthz?verbose", http.StatusOK, "[+]ping ok", "[+]leaderElection ok")
}

// TestAStandbyIsReady checks that a standby is ready, because it could take over, and
// that it counts the Foos, too.
func TestAStandbyIsReady(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	flags := []string{"-kubeconfig=" + ns.newAccount(t).kubeconfig, "-namespace=" + ns.name, "-leader-elect",
		"-health-probe-bind-address=" + anyPort, "-metrics-bind-address=" + anyPort}
	leader := startController(t, flags...)
	leader.awaitLog(t, "Starting workers", 1)
	ns.createReadyFoo(t, newFoo("foo"))
	standby := startController(t, flags...)
	awaitAnswer(t, "http://"+standby.servedAt(t, "health")+"/readyz", http.StatusOK)
	standby.expectHealth(t, "/healthz", http.StatusOK)
	token := ns.newReader(t)
	standby.awaitMetrics(t, token, `leader_election_master_status{name="sample-controller"} 0`, `sample_controller_foos{ready="True"} 1`,
		`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	leader.awaitMetrics(t, token, `leader_election_master_status{name="sample-controller"} 1`, `sample_controller_foos{ready="True"} 1`)
	if standby.log.Count("Starting workers") > 0 {
		t.Error("The standby has started its workers")
	}
}

// TestAControllerThatStopsIsNotReady checks that a controller which waits for its last
// sync is healthy, but not ready.
func TestAControllerThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	p, gate := startHeldUp(t, newNamespace(t), "-health-probe-bind-address="+anyPort)
	p.expectHealth(t, "/readyz", http.StatusOK)
	p.signal(t, syscall.SIGTERM)
	p.awaitLog(t, stopping, 1)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]shutdown failed")
	p.expectHealth(t, "/healthz", http.StatusOK)
	gate.open()
	if code := p.exitCode(t); code != 0 {
		t.Errorf("The exit code is %d, want 0", code)
	}
}

// stopping is the message that the controller logs after a signal.
const stopping = "Stopping: waiting for the syncs under way"

// startHeldUp starts a controller, with more flags, whose first write is held by a gate.
func startHeldUp(t *testing.T, ns *namespace, flags ...string) (*process, *gate) {
	t.Helper()
	gate := newGate(t, func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+childResource)
	})
	p := startController(t, append([]string{"-kubeconfig=" + gate.kubeconfig, "-namespace=" + ns.name}, flags...)...)
	ns.createFoo(t, newFoo("slow"))
	receive(t, gate.arrived)
	return p, gate
}

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
