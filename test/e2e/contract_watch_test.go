// SPDX-License-Identifier: Apache-2.0

// The contract: how the controller lists and watches, and how it recovers when a watch or
// the CRD is lost.

package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func TestTheControllerWorksWithAndWithoutWatchList(t *testing.T) {
	t.Parallel()
	for value, streams := range map[string]bool{"false": false, "true": true} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			_, sent := ns.startRecorded(t, []string{"KUBE_FEATURE_WatchListClient=" + value})
			ns.createReadyFoo(t, newFoo("foo", withReplicas(1)))
			mergePatch(t, ns.foos(), "foo", `{"spec":{"replicas":3}}`)
			ns.awaitReplicas(t, "foo", 3)
			ns.deleteFoo(t, "foo", metav1.DeletePropagationBackground)
			awaitGone(t, ns.children(), "foo")
			if got := sent.count(http.MethodGet, "sendInitialEvents=true") > 0; got != streams {
				t.Errorf("The controller received the first list as a stream: %v, want %v", got, streams)
			}
		})
	}
}

func TestASilentlyDeadWatchIsReplaced(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	line := newLine(t)
	startControllerIn(t, []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"},
		"-kubeconfig="+line.kubeconfig, "-namespace="+ns.name, "-resync=0")
	ns.createReadyFoo(t, newFoo("foo", withReplicas(1)))
	line.goSilent()
	mergePatch(t, ns.foos(), "foo", `{"spec":{"replicas":3}}`)
	ns.awaitReplicas(t, "foo", 3)
}

// line is a TCP proxy in front of the API server, whose connections can go dead without
// being closed.
type line struct {
	kubeconfig string
	mu         sync.Mutex
	open       []net.Conn
	silent     map[net.Conn]bool
}

// newLine starts a line that works until the test ends.
func newLine(t *testing.T) *line {
	t.Helper()
	target, err := url.Parse(cluster.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), silent: map[net.Conn]bool{}}
	t.Cleanup(func() { l.close(listener) })
	l.writeKubeconfig(t, listener.Addr().String(), target.Hostname())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target.Host)
			if err != nil {
				client.Close()
				continue
			}
			l.join(client, server)
		}
	}()
	return l
}

// writeKubeconfig writes a kubeconfig that leads to the API server through the line.
func (l *line) writeKubeconfig(t *testing.T, address, name string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.account.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + address
		c.TLSServerName = name
	}
	if err := clientcmd.WriteToFile(*config, l.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// join copies data between two connections until one of them ends.
func (l *line) join(client, server net.Conn) {
	l.mu.Lock()
	l.open = append(l.open, client, server)
	l.mu.Unlock()
	go l.copy(server, client)
	go l.copy(client, server)
}

func (l *line) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if l.isSilent(from) {
			// Drop the data, and do not pass on the end of the connection.
			_, _ = io.Copy(io.Discard, from)
			return
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

func (l *line) isSilent(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent[conn]
}

// goSilent stops all data on the connections that are open now. Later connections work.
func (l *line) goSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		l.silent[conn] = true
	}
}

func (l *line) close(listener net.Listener) {
	listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		conn.Close()
	}
}

// TestTheControllerRecoversWhenTheCRDIsRecreated needs a cluster of its own, because the
// CRD belongs to the whole cluster. An API server and etcd are enough.
func TestTheControllerRecoversWhenTheCRDIsRecreated(t *testing.T) {
	t.Parallel()
	own := newBareCluster(t)
	ns, crd := own.inDefault(), crdClient(own.dynamic)
	account := newAccountIn(t, own.kubeconfig, ns.name)
	p := startController(t, "-kubeconfig="+account.kubeconfig)

	live := func(foo string) {
		t.Helper()
		if err := errors.Join(own.installCRD(t.Context()), account.awaitFoosAsOwners(t.Context(), ns.name)); err != nil {
			t.Fatal(err)
		}
		stop := ns.witness(t)
		ns.createFoo(t, newFoo(foo))
		awaitOne(t, "the Foo has a child", ns.children(), foo, func(*child) error { return nil })
		stop() // without the CRD Foos can't be watched
	}
	live("first")
	if err := crd.Delete(t.Context(), crdName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, crd, crdName)
	live("second")
	if p.HasEnded() {
		t.Error("The controller has ended")
	}
}
