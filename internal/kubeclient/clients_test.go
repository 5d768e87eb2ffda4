// SPDX-License-Identifier: Apache-2.0

// Tests of the protocols that the clients use.

package kubeclient

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Watches need HTTP/2's pings. Calls have deadlines, and cost less with HTTP/1.1.
func TestWhichClientsUseHTTP2(t *testing.T) {
	protocols := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols <- r.Proto
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}

	for _, row := range []struct {
		workers int
		calls   string
	}{{2, "HTTP/1.1"}, {keptConnections, "HTTP/1.1"}, {keptConnections + 1, "HTTP/2.0"}} {
		clients, err := New(config, row.workers, 0)
		must(t, err)
		ctx := t.Context()
		for name, of := range map[string]struct {
			call func() error
			want string
		}{
			"caches of Foos": {func() error {
				_, err := clients.FooInformers.SamplecontrollerV1alpha1().Foos("").List(ctx, metav1.ListOptions{})
				return err
			}, "HTTP/2.0"},
			"caches of ReplicaSets": {func() error {
				_, err := clients.KubeInformers.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
				return err
			}, "HTTP/2.0"},
			"Foos": {func() error {
				_, err := clients.Foos.SamplecontrollerV1alpha1().Foos("a").Get(ctx, "a", metav1.GetOptions{})
				return err
			}, row.calls},
			"ReplicaSets": {func() error {
				_, err := clients.Kube.AppsV1().ReplicaSets("a").Get(ctx, "a", metav1.GetOptions{})
				return err
			}, row.calls},
			"Events": {func() error {
				_, err := clients.Events.CoreV1().Events("a").Get(ctx, "a", metav1.GetOptions{})
				return err
			}, "HTTP/1.1"},
			"the Lease": {func() error {
				_, err := clients.Election.CoordinationV1().Leases("a").Get(ctx, "a", metav1.GetOptions{})
				return err
			}, "HTTP/2.0"},
		} {
			must(t, of.call())
			if got := <-protocols; got != of.want {
				t.Errorf("%d workers: requests for %s use %s, not %s", row.workers, name, got, of.want)
			}
		}
	}
}
