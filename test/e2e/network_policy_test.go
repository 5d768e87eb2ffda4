// SPDX-License-Identifier: Apache-2.0

// The shipped NetworkPolicy, and a proxy that refuses what it refuses.

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/testcluster"
)

// The namespaces of Prometheus in the shipped policy and in the documented patch.
const (
	shippedMonitoring = "monitoring"
	patchedMonitoring = "observability"
)

// policyPatch matches the patch in docs/operations.md.
var policyPatch = regexp.MustCompile("(?s)```yaml\n(patches:\n- target: {kind: NetworkPolicy.*?)```")

// TestTheNetworkPolicyAdmitsOnlyPrometheus evaluates the policy itself, because the
// clusters of these tests have no network plugin.
func TestTheNetworkPolicyAdmitsOnlyPrometheus(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "operations.md"))
	if err != nil {
		t.Skipf("the documents are missing: %v", err)
	}
	patch := policyPatch.FindSubmatch(manual)
	if patch == nil {
		t.Fatal("docs/operations.md does not have the patch for another namespace")
	}
	for _, test := range []struct{ what, patch, prometheus, stranger string }{
		{"as it is shipped", "", shippedMonitoring, patchedMonitoring},
		{"with the documented patch", string(patch[1]), patchedMonitoring, shippedMonitoring},
	} {
		t.Run(test.what, func(t *testing.T) {
			policy, program := policyOf(t, test.patch)
			for _, namespace := range []string{test.prometheus, test.stranger, "default", shippedNamespace} {
				for _, port := range program.Spec.Template.Spec.Containers[0].Ports {
					want := namespace == test.prometheus && port.Name == "metrics"
					if got := admits(t, policy, program, namespace, port.Name); got != want {
						t.Errorf("The policy admits connections from the namespace %s to the port %s: %v, want %v", namespace, port.Name, got, want)
					}
				}
			}
		})
	}
}

// policyOf returns the NetworkPolicy and the Deployment of an overlay.
func policyOf(t *testing.T, patch string) (*networkingv1.NetworkPolicy, *appsv1.Deployment) {
	t.Helper()
	folder := t.TempDir()
	base, err := filepath.Abs(deployFolder)
	if err == nil {
		base, err = filepath.Rel(folder, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "kustomization.yaml", "resources: ['"+filepath.ToSlash(base)+"']\n"+patch)
	out, err := kubectlCommand(t, []string{"kustomize", folder}).Output()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := parseObjects(out)
	if err != nil {
		t.Fatal(err)
	}
	policy, program := &networkingv1.NetworkPolicy{}, &appsv1.Deployment{}
	for _, object := range objects {
		into := map[string]any{"NetworkPolicy": policy, "Deployment": program}[object.GetKind()]
		if into == nil {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	return policy, program
}

// admits reports whether any Pod of a namespace may connect to a named port.
func admits(t *testing.T, policy *networkingv1.NetworkPolicy, program *appsv1.Deployment, namespace, port string) bool {
	t.Helper()
	matches := func(selector *metav1.LabelSelector, set labels.Set) bool {
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Matches(set)
	}
	if !matches(&policy.Spec.PodSelector, program.Spec.Template.Labels) {
		return true
	}
	// The API server sets this label of each namespace.
	from := labels.Set{corev1.LabelMetadataName: namespace}
	for _, rule := range policy.Spec.Ingress {
		ports, peers := len(rule.Ports) == 0, len(rule.From) == 0
		for _, p := range rule.Ports {
			ports = ports || p.Port == nil || p.Port.StrVal == port
		}
		for _, peer := range rule.From {
			peers = peers || peer.PodSelector == nil && peer.IPBlock == nil && matches(peer.NamespaceSelector, from)
		}
		if ports && peers {
			return true
		}
	}
	return false
}

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
