// SPDX-License-Identifier: Apache-2.0

// Programs and manifests of upstream's users.

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// thirdparty is the path of a module of its own, because it depends on upstream's.
const thirdparty = "../thirdparty"

func TestThirdPartyClientsWorkUnchanged(t *testing.T) {
	t.Parallel()
	if os.Getenv("THIRDPARTY") != "1" {
		t.Skip("THIRDPARTY=1 is not set, as make test-e2e does on a devcluster: this test downloads and builds upstream's module")
	}
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"a program compiled against upstream's clientset, informer and lister", checkThirdPartyProgram},
		{"upstream's example-foo.yaml", checkUpstreamExample},
	})
}

func checkThirdPartyProgram(t *testing.T, ns *namespace) {
	program := filepath.Join(t.TempDir(), "thirdparty")
	goCommand(t, "build", "-o", program, ".")
	command := exec.CommandContext(t.Context(), program,
		"-kubeconfig="+cluster.kubeconfig, "-namespace="+ns.name, "-timeout="+cluster.patience().String())
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("The program failed: %v\n%s", err, out)
	}
	awaitGone(t, ns.children(), "third-party")
}

func checkUpstreamExample(t *testing.T, ns *namespace) {
	goCommand(t, "mod", "download", "k8s.io/sample-controller")
	upstream := strings.TrimSpace(goCommand(t, "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-controller"))
	ns.applyExample(t, filepath.Join(upstream, "artifacts/examples/example-foo.yaml"))
}

// goCommand runs the go command in the module thirdparty and returns its output.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = thirdparty
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	return string(out)
}
