// SPDX-License-Identifier: Apache-2.0

// Programs and manifests of upstream's users, and a Deployment that upstream's controller
// created.

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	tr := newTrial(t)
	tr.start()
	t.Run("a program compiled against upstream's clientset, informer and lister", func(t *testing.T) {
		env := []string{"CLIENT_KUBECONFIG=" + tr.cluster.kubeconfig, "CLIENT_NAMESPACE=" + tr.ns}
		goCommand(t, env, "test", "-vet=off", "-count=1", ".")
		tr.awaitGone("third-party")
	})
	t.Run("upstream's example-foo.yaml", func(t *testing.T) {
		goCommand(t, nil, "mod", "download", "k8s.io/sample-controller")
		upstream := strings.TrimSpace(goCommand(t, nil, "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-controller"))
		tr.kubectl("create", "--filename="+filepath.Join(upstream, "artifacts/examples/example-foo.yaml"))
		tr.awaitPods("example-foo", 1)
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
	tr := newTrial(t)
	upstream, err := buildUpstream(t.Context())
	footest.Must(t, err)
	tr.subject = upstream
	r := tr.start()
	tr.createFoo("foo", "foo", 2)
	tr.awaitSettled("foo")
	versions := func() string {
		const versionsOf = `-o=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`
		return tr.kubectl("get", "deployments", "--field-selector=metadata.name=foo", versionsOf) +
			tr.kubectl("get", "pods", "--selector=controller=foo", versionsOf)
	}
	before := versions()
	r.kill()

	tr.subject = run.ours
	r = tr.start()
	tr.stableAndQuiet()
	tr.stop(r)
	footest.ExpectEqual(t, "the versions of the child and its Pods", before, versions())
}
