// SPDX-License-Identifier: Apache-2.0

// Tests of the components' arguments.

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"
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

func TestEverythingListensOnLoopback(t *testing.T) {
	for component, args := range map[string][]string{
		APIServer:         apiServerArgs(testLayout, testPorts),
		ControllerManager: controllerManagerArgs(testLayout, testPorts),
		Scheduler:         schedulerArgs(testLayout, testPorts),
	} {
		if got := flagValue(t, args, "bind-address"); got != "127.0.0.1" {
			t.Errorf("%s listens on %s", component, got)
		}
	}
	args := etcdArgs(testLayout, testPorts, true)
	if got := flagValue(t, args, "listen-client-urls"); got != "https://127.0.0.1:2" {
		t.Errorf("etcd listens for clients on %s", got)
	}
	if got := flagValue(t, args, "listen-peer-urls"); got != "https://127.0.0.1:3" {
		t.Errorf("etcd listens for peers on %s", got)
	}
}

func TestComponentsGetTheirPorts(t *testing.T) {
	for _, test := range []struct {
		component, flag, want string
		args                  []string
	}{
		{APIServer, "secure-port", "1", apiServerArgs(testLayout, testPorts)},
		{APIServer, "etcd-servers", "https://127.0.0.1:2", apiServerArgs(testLayout, testPorts)},
		{ControllerManager, "secure-port", "4", controllerManagerArgs(testLayout, testPorts)},
		{Scheduler, "secure-port", "5", schedulerArgs(testLayout, testPorts)},
	} {
		if got := flagValue(t, test.args, test.flag); got != test.want {
			t.Errorf("%s --%s=%s, want %s", test.component, test.flag, got, test.want)
		}
	}
}

// A component that does not share its port can't listen on it, because the supervisor
// holds the port.
func TestComponentsSharePorts(t *testing.T) {
	for component, args := range map[string][]string{
		APIServer:         apiServerArgs(testLayout, testPorts),
		ControllerManager: controllerManagerArgs(testLayout, testPorts),
		Scheduler:         schedulerArgs(testLayout, testPorts),
	} {
		if got := flagValue(t, args, "permit-port-sharing"); got != "true" {
			t.Errorf("%s --permit-port-sharing=%s", component, got)
		}
	}
	if got := flagValue(t, etcdArgs(testLayout, testPorts, true), "socket-reuse-port"); got != "true" {
		t.Errorf("etcd --socket-reuse-port=%s", got)
	}
}

func TestAPIServerAuthorizesRequests(t *testing.T) {
	args := apiServerArgs(testLayout, testPorts)
	if got := flagValue(t, args, "authorization-mode"); got != "Node,RBAC" {
		t.Errorf("authorization modes: %s", got)
	}
	plugins := strings.Split(flagValue(t, args, "enable-admission-plugins"), ",")
	if !slices.Contains(plugins, "OwnerReferencesPermissionEnforcement") {
		t.Errorf("admission plugins: %s", plugins)
	}
	if got := flagValue(t, args, "client-ca-file"); got != "/data/pki/ca.crt" {
		t.Errorf("the authority for clients is %s", got)
	}
	if etcd := flagValue(t, args, "etcd-cafile"); etcd == "/data/pki/ca.crt" {
		t.Error("etcd would accept the clients of the API")
	}
}

func TestEachControllerHasItsOwnIdentity(t *testing.T) {
	args := controllerManagerArgs(testLayout, testPorts)
	if got := flagValue(t, args, "use-service-account-credentials"); got != "true" {
		t.Errorf("--use-service-account-credentials=%s", got)
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
	want := "kwok.x-k8s.io/node=fake"
	if got := flagValue(t, kwokArgs(testLayout), "manage-nodes-with-label-selector"); got != want {
		t.Errorf("KWOK manages nodes with the label %s, want %s", got, want)
	}
	if got := node("a").Labels["kwok.x-k8s.io/node"]; got != "fake" {
		t.Errorf("the label of a node is %q, want fake, which KWOK manages", got)
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
