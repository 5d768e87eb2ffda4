// SPDX-License-Identifier: Apache-2.0

// The gate: a proxy in front of the API server that holds requests.

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/testcluster"
)

// gate is a proxy in front of the API server that holds some requests.
type gate struct {
	// kubeconfig leads through the gate.
	kubeconfig string
	// arrived is closed when the gate holds the first request.
	arrived <-chan struct{}
	// open lets all requests pass. It may be called more than once.
	open func()
}

// newGate starts a gate that holds the requests for which stops returns true.
func newGate(t *testing.T, stops func(*http.Request) bool) *gate {
	t.Helper()
	return newGateFor(t, cluster.account, stops)
}

// newGateFor is newGate for another account.
func newGateFor(t *testing.T, account *account, stops func(*http.Request) bool) *gate {
	t.Helper()
	arrived, opened := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) })
	g := &gate{arrived: arrived, open: sync.OnceFunc(func() { close(opened) })}

	proxy := proxyToAPIServer(t, account)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stops(r) {
			arrive()
			select {
			case <-opened:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(g.open)
	g.kubeconfig = kubeconfigFor(t, server.URL)
	return g
}

// proxyToAPIServer returns a handler that forwards requests with the credentials of an
// account.
func proxyToAPIServer(t *testing.T, account *account) http.Handler {
	t.Helper()
	transport, err := rest.TransportFor(account.config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(account.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// kubeconfigFor writes a kubeconfig without credentials for a server.
func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testcluster.WriteKubeconfig(path, server, nil, clientcmdapi.AuthInfo{}); err != nil {
		t.Fatal(err)
	}
	return path
}
