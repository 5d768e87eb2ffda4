// SPDX-License-Identifier: Apache-2.0

// Tests of the options, and of the components' arguments and ports.

package cluster

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
)

var (
	testLayout = layout("/data")
	testPorts  = ports{api: 1, etcd: 2, etcdPeer: 3, controllerManager: 4, scheduler: 5}
)

// TestArguments asserts what a cluster would start without.
func TestArguments(t *testing.T) {
	etcd, api := etcdArgs(testLayout, testPorts, true), apiServerArgs(testLayout, testPorts)
	manager, scheduler := controllerManagerArgs(testLayout, testPorts), schedulerArgs(testLayout, testPorts)
	for _, test := range []struct {
		what string
		args []string
		want []string
	}{
		{"etcd listens on the loopback address", etcd, []string{
			"--listen-client-urls=https://127.0.0.1:2", "--listen-peer-urls=https://127.0.0.1:3",
		}},
		{"kube-apiserver does", api, []string{"--bind-address=127.0.0.1"}},
		{"kube-controller-manager does", manager, []string{"--bind-address=127.0.0.1"}},
		{"kube-scheduler does", scheduler, []string{"--bind-address=127.0.0.1"}},
		{"requests are authorized", api, []string{
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		}},
		{"clients of the API are no clients of etcd", slices.Concat(api, etcd), []string{
			"--client-ca-file=/data/pki/ca.crt", "--client-cert-auth=true", "--trusted-ca-file=/data/pki/etcd-ca.crt",
		}},
		{"each controller has its own identity", manager, []string{"--use-service-account-credentials=true"}},
	} {
		for _, want := range test.want {
			if !slices.Contains(test.args, want) {
				t.Errorf("%s: no %s in %q", test.what, want, test.args)
			}
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

// A component that renews its Lease late, and a node that does, are not given up at once.
func TestLateRenewalsAreForgiven(t *testing.T) {
	if renewal := nodeLease / 4; componentLease*5/6 < time.Minute || nodeGrace < 5*renewal {
		t.Errorf("a component has %v, and a node %v", componentLease*5/6, nodeGrace)
	}
}

func TestKwokIgnoresTheUsersConfiguration(t *testing.T) {
	if got := componentEnv(testLayout, Kwok); !slices.Contains(got, "KWOK_WORKDIR=/data/config") {
		t.Errorf("KWOK's environment: %q", got)
	}
}

func TestAHeldPortIsNotAssigned(t *testing.T) {
	held, holds, err := holdPorts()
	must(t, err)
	defer holds.release()
	if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", held.api)); err == nil {
		_ = listener.Close()
		t.Error("another program can listen on the port")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
