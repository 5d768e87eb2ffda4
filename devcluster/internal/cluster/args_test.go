// SPDX-License-Identifier: Apache-2.0

// Tests of the options, and of the components' arguments and ports.

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	testLayout = NewLayout("/data")
	testPorts  = Ports{API: 1, Etcd: 2, EtcdPeer: 3, ControllerManager: 4, Scheduler: 5}
)

// flagValue returns the value of a flag in a component's arguments.
func flagValue(t *testing.T, args []string, name string) string {
	t.Helper()
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	t.Fatalf("no flag --%s in %q", name, args)
	return ""
}

func TestArguments(t *testing.T) {
	etcd, api := etcdArgs(testLayout, testPorts, true), apiServerArgs(testLayout, testPorts)
	manager, scheduler := controllerManagerArgs(testLayout, testPorts), schedulerArgs(testLayout, testPorts)
	for _, test := range []struct {
		what string
		args []string
		want map[string]string
	}{
		{"etcd listens on the loopback address, at its ports", etcd, map[string]string{
			"listen-client-urls": "https://127.0.0.1:2", "listen-peer-urls": "https://127.0.0.1:3",
		}},
		{"kube-apiserver does, and finds etcd", api, map[string]string{
			"bind-address": "127.0.0.1", "secure-port": "1", "etcd-servers": "https://127.0.0.1:2",
		}},
		{"kube-controller-manager does", manager, map[string]string{"bind-address": "127.0.0.1", "secure-port": "4"}},
		{"kube-scheduler does", scheduler, map[string]string{"bind-address": "127.0.0.1", "secure-port": "5"}},
		// A component that does not share its port can't listen on it, because the supervisor
		// holds the port.
		{"etcd shares its ports", etcd, map[string]string{"socket-reuse-port": "true"}},
		{"kube-apiserver shares its port", api, map[string]string{"permit-port-sharing": "true"}},
		{"kube-controller-manager shares its port", manager, map[string]string{"permit-port-sharing": "true"}},
		{"kube-scheduler shares its port", scheduler, map[string]string{"permit-port-sharing": "true"}},
		{"requests are authorized", api, map[string]string{
			"authorization-mode":       "Node,RBAC",
			"enable-admission-plugins": "NodeRestriction,OwnerReferencesPermissionEnforcement",
		}},
		{"clients of the API are no clients of etcd", api, map[string]string{
			"client-ca-file": "/data/pki/ca.crt", "etcd-cafile": "/data/pki/etcd-ca.crt",
		}},
		{"each controller has its own identity", manager, map[string]string{"use-service-account-credentials": "true"}},
	} {
		for name, want := range test.want {
			if got := flagValue(t, test.args, name); got != want {
				t.Errorf("%s: --%s=%s, want %s", test.what, name, got, want)
			}
		}
	}
}

func TestComponentsSurviveAMinuteWithoutTheAPIServer(t *testing.T) {
	for component, args := range map[string][]string{
		"kube-controller-manager": controllerManagerArgs(testLayout, testPorts), "kube-scheduler": schedulerArgs(testLayout, testPorts),
	} {
		deadline, err := time.ParseDuration(flagValue(t, args, "leader-elect-renew-deadline"))
		if err != nil {
			t.Fatal(err)
		}
		lease, err := time.ParseDuration(flagValue(t, args, "leader-elect-lease-duration"))
		if err != nil {
			t.Fatal(err)
		}
		if deadline < time.Minute || deadline >= lease {
			t.Errorf("%s exits after %v without its Lease of %v", component, deadline, lease)
		}
	}
}

func TestEtcdSyncsKeptData(t *testing.T) {
	const noSync = "--unsafe-no-fsync=true"
	if slices.Contains(etcdArgs(testLayout, testPorts, true), noSync) {
		t.Error("kept data is not synced to disk")
	}
	if !slices.Contains(etcdArgs(testLayout, testPorts, false), noSync) {
		t.Error("temporary data is synced to disk")
	}
}

func TestNodesMayMissRenewals(t *testing.T) {
	renewal := nodeLease / 4 // the interval of KWOK and of a kubelet
	if missed := nodeGrace / renewal; missed < 5 {
		t.Errorf("a live node becomes NotReady after %d missed renewals", missed)
	}
}

// If only the API server emulates a version, kube-scheduler waits for kinds that are not
// served.
func TestComponentsEmulateTheSameVersion(t *testing.T) {
	for component, want := range map[string]string{
		APIServer: "--emulated-version=1.35", ControllerManager: "--emulated-version=1.35", Scheduler: "--emulated-version=1.35",
		Etcd: "", Kwok: "",
	} {
		if got := strings.Join(emulationArgs(component, "1.35"), " "); got != want {
			t.Errorf("to emulate 1.35, %s gets %q, want %q", component, got, want)
		}
		if got := emulationArgs(component, ""); len(got) > 0 {
			t.Errorf("to emulate nothing, %s gets %q", component, got)
		}
	}
}

func TestKwokIgnoresTheUsersConfiguration(t *testing.T) {
	if got := componentEnv(testLayout, Kwok); !slices.Contains(got, "KWOK_WORKDIR=/data/config") {
		t.Errorf("KWOK's environment: %q", got)
	}
}

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

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name, args, wantError string
	}{
		{"defaults", "", ""},
		{"chosen ports", "-api-port=6443 -etcd-port=2379", ""},
		{"no nodes", "-nodes=0", ""},
		{"without components, and an empty name", "-without=kwok,", ""},
		{"a port too high", "-api-port=65536", "-api-port 65536: must be a port from 0 to 65535"},
		{"a negative port", "-etcd-peer-port=-1", "-etcd-peer-port -1: must be a port from 0 to 65535"},
		{"one port twice", "-api-port=6443 -etcd-port=6443", "-api-port and -etcd-port are both 6443; use different ports, or 0 for any free one"},
		{"negative nodes", "-nodes=-1", "-nodes -1: must be from 0 to 5000"},
		{"too many nodes", "-nodes=5001", "-nodes 5001: must be from 0 to 5000"},
		{"without an unknown component", "-without=kubelet", "-without kubelet: unknown component"},
		{"without a needed component", "-without=kwok,etcd", "-without etcd: unknown component, or one that is always needed"},
		{"bodies of a subresource", "-audit-bodies=pods/status", "-audit-bodies pods/status: must be RESOURCE or RESOURCE.GROUP"},
		{"a version to emulate", "-emulated-version=1.35", ""},
		{"the oldest version to emulate", "-emulated-version=1.34", ""},
		{"its own version to emulate", "-emulated-version=1.37", ""},
		{"a version that is too old", "-emulated-version=1.33", "-emulated-version 1.33: out of range, the components can emulate 1.34 to 1.37"},
		{"a version that is too new", "-emulated-version=1.38", "-emulated-version 1.38: out of range, the components can emulate 1.34 to 1.37"},
		{"another major version", "-emulated-version=2.35", "-emulated-version 2.35: out of range"},
		{"a patch version", "-emulated-version=1.35.1", "-emulated-version 1.35.1: not MAJOR.MINOR, such as 1.35"},
		{"a version with a v", "-emulated-version=v1.35", "-emulated-version v1.35: not MAJOR.MINOR"},
		{"a version with a component", "-emulated-version=kube=1.35", "-emulated-version kube=1.35: not MAJOR.MINOR"},
		{"an incomplete version", "-emulated-version=1.", "-emulated-version 1.: not MAJOR.MINOR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := parseOptions(t, test.args).Validate()
			switch {
			case test.wantError == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.wantError != "" && (err == nil || !strings.HasPrefix(err.Error(), test.wantError)):
				t.Errorf("got %v, want %s", err, test.wantError)
			}
		})
	}
}

func parseOptions(t *testing.T, args string) *Options {
	t.Helper()
	var options Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.AddFlags(flags)
	if err := flags.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return &options
}
