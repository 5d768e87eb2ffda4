// SPDX-License-Identifier: Apache-2.0

// Programs and manifests of upstream's users, and a Deployment that upstream's controller
// created.

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/sample-controller/test/footest"
)

// needsUpstream skips a test that downloads and builds upstream's module.
func needsUpstream(t *testing.T) {
	t.Helper()
	if os.Getenv("THIRDPARTY") != "1" {
		t.Skip("THIRDPARTY=1 is not set, as make test-e2e does on a devcluster")
	}
}

func TestThirdPartyClientsWorkUnchanged(t *testing.T) {
	t.Parallel()
	needsUpstream(t)
	ns := newNamespace(t)
	ns.startController(t)
	t.Run("a program compiled against upstream's clientset, informer and lister", func(t *testing.T) {
		env := []string{"CLIENT_KUBECONFIG=" + cluster.kubeconfig, "CLIENT_NAMESPACE=" + ns.name}
		goCommand(t, env, "test", "-vet=off", "-count=1", ".")
		awaitGone(t, ns.primary().children(), "third-party")
	})
	t.Run("upstream's example-foo.yaml", func(t *testing.T) {
		goCommand(t, nil, "mod", "download", "k8s.io/sample-controller")
		upstream := strings.TrimSpace(goCommand(t, nil, "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-controller"))
		ns.kubectl(t, "create", "--filename="+filepath.Join(upstream, "artifacts/examples/example-foo.yaml"))
		ns.awaitReplicas(t, "example-foo", 1)
	})
}

// goCommand runs the go command in the module of test/thirdparty, which depends on
// upstream's, with more environment variables, and returns its output.
func goCommand(t *testing.T, env []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = "../thirdparty", append(os.Environ(), env...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestADeploymentMadeByUpstreamIsTakenOverWithoutAWrite also checks its Pods.
func TestADeploymentMadeByUpstreamIsTakenOverWithoutAWrite(t *testing.T) {
	t.Parallel()
	needsUpstream(t)
	program := filepath.Join(t.TempDir(), "upstream")
	goCommand(t, nil, "build", "-o", program, "k8s.io/sample-controller")
	ns := newNamespace(t)
	k := ns.primary()
	// Upstream's controller can't be restricted to a namespace, and must not write in others.
	kubeconfig := behindProxy(t, cluster.account, func(r *http.Request) {
		for _, resource := range []string{"deployments", "foos"} {
			if group, found := strings.CutSuffix(r.URL.Path, "/"+resource); found && !strings.Contains(group, "/namespaces/") {
				r.URL.Path = group + "/namespaces/" + ns.name + "/" + resource
			}
		}
	}, nil)
	upstream := startProcess(t, exec.CommandContext(cluster.ctx, program, "-kubeconfig="+kubeconfig))
	foo := k.createOwner(t, newFoo("foo", 2))
	k.awaitSettled(t, foo)
	versions := func() string {
		return ns.kubectl(t, "get", k.Resource.GroupResource().String(), "--field-selector=metadata.name=foo", versionsOf) +
			ns.kubectl(t, "get", "pods", "--selector=controller=foo", versionsOf)
	}
	before := versions()
	upstream.end(t, syscall.SIGKILL)

	p := ns.startController(t)
	ns.awaitReplicas(t, "foo", 2)
	k.awaitSyncs(t)
	p.stop(t)
	footest.ExpectEqual(t, "the versions of the child and its Pods", before, versions())
}
