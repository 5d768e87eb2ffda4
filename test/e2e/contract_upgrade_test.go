// SPDX-License-Identifier: Apache-2.0

// The contract: a Deployment that upstream's controller created is taken over as it is.

package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestADeploymentMadeByUpstreamIsTakenOverWithoutAWrite(t *testing.T) {
	t.Parallel()
	if os.Getenv("THIRDPARTY") != "1" {
		t.Skip("THIRDPARTY=1 is not set, as make test-e2e does on a devcluster: this test downloads and builds upstream's controller")
	}
	needsNoOtherController(t)
	program := filepath.Join(t.TempDir(), "upstream")
	goCommand(t, "build", "-o", program, "k8s.io/sample-controller")
	ns := newNamespace(t)
	upstream := startProcess(t, exec.CommandContext(cluster.ctx, program, "-kubeconfig="+ns.onlyKubeconfig(t)))
	ns.createFoo(t, newFoo("foo", withReplicas(2)))
	before := ns.settledDeployment(t, "foo")
	upstream.kill(t)
	podsBefore := podVersions(t, ns, "foo")

	p := ns.startController(t)
	ns.awaitReady(t, "foo")
	ns.awaitSyncs(t)
	p.stop(t)
	ns.isSameVersion(t, before)
	if after := podVersions(t, ns, "foo"); len(after) != 2 || !maps.Equal(after, podsBefore) {
		t.Errorf("The Pods are %v, before %v", after, podsBefore)
	}
}

// onlyKubeconfig returns a kubeconfig for a proxy that serves only the namespace.
// Upstream's controller can't be restricted to a namespace, and must not write in others.
func (ns *namespace) onlyKubeconfig(t *testing.T) string {
	t.Helper()
	proxy := proxyToAPIServer(t, cluster.account)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, resource := range []string{"deployments", "foos"} {
			if group, found := strings.CutSuffix(r.URL.Path, "/"+resource); found && !strings.Contains(group, "/namespaces/") {
				r.URL.Path = group + "/namespaces/" + ns.name + "/" + resource
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return kubeconfigFor(t, server.URL)
}

// podVersions returns the resourceVersion of each of a Foo's Pods.
func podVersions(t *testing.T, ns *namespace, foo string) map[string]string {
	t.Helper()
	pods, err := ns.pods().List(t.Context(), podsOf(foo))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for i := range pods.Items {
		versions[pods.Items[i].Name] = pods.Items[i].ResourceVersion
	}
	return versions
}
