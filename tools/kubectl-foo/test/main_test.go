// SPDX-License-Identifier: Apache-2.0

// Package test runs kubectl foo against a devcluster.
package test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// limit is how long a test waits for a state. It is long because machines may be busy.
const limit = 3 * time.Minute

// tree is the root of this project.
const tree = "../../.."

const plugin = tree + "/bin/kubectl-foo"

// devcluster is the path of the program, and kubeconfig its cluster's administrator kubeconfig, or "".
var devcluster, kubeconfig = os.Getenv("DEVCLUSTER_BIN"), os.Getenv(clientcmd.RecommendedConfigPathEnvVar)

// auditLog is the API server's audit log.
var auditLog = filepath.Join(filepath.Dir(kubeconfig), "audit.log")

func TestMain(m *testing.M) {
	flag.Parse()
	if devcluster == "" || kubeconfig == "" {
		fmt.Println("all tests skipped: DEVCLUSTER_BIN or KUBECONFIG is not set; run make test-kubectl-foo")
		return
	}
	err := testcluster.InstallCRDs(context.Background(), devcluster, kubeconfig, tree)
	if err == nil {
		_, err = testcluster.Kubectl(context.Background(), devcluster, kubeconfig, "create", "namespace", names.Controller)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startController starts the controller with leader election, until the test ends.
func startController(t *testing.T) *testcluster.Program {
	t.Helper()
	command := exec.Command(tree+"/bin/sample-controller", "-kubeconfig="+kubeconfig, "-leader-elect", "-leader-elect-resource-namespace="+names.Controller)
	controller, err := testcluster.StartProgram("the controller", filepath.Join(t.TempDir(), "controller.log"), command)
	footest.Must(t, err)
	t.Cleanup(func() {
		if err := controller.Err(); err != nil && t.Failed() {
			t.Log(err)
		}
		controller.Stop(limit)
	})
	return controller
}

// namespace is a test's namespace.
type namespace struct {
	*testing.T

	name string
}

func newNamespace(t *testing.T, name string) namespace {
	t.Helper()
	ns := namespace{t, name}
	ns.kubectl("create", "namespace", name)
	return ns
}

// kubectl runs kubectl in the namespace with the administrator's account.
func (ns namespace) kubectl(args ...string) string {
	ns.Helper()
	out, err := testcluster.Kubectl(ns.Context(), devcluster, kubeconfig, append(args, "-n", ns.name)...)
	footest.Must(ns.T, err)
	return out
}

// file writes a manifest, and returns its path.
func (ns namespace) file(manifest string) string {
	ns.Helper()
	path := filepath.Join(ns.TempDir(), "manifest.yaml")
	footest.Must(ns.T, os.WriteFile(path, []byte(manifest), 0o600))
	return path
}

// manifestOf returns a Foo for a Deployment with two Pods.
func manifestOf(name, deployment string) string {
	return fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata: {name: %s}\nspec: {deploymentName: %s, replicas: 2}\n", name, deployment)
}

// withFoo creates a Foo "a" with the Deployment "web".
func (ns namespace) withFoo() {
	ns.Helper()
	ns.kubectl("create", "-f", ns.file(manifestOf("a", "web")))
}

// withReadyFoo does the same, and waits until it is ready.
func (ns namespace) withReadyFoo() {
	ns.Helper()
	ns.withFoo()
	ns.kubectl("wait", "--for=condition=Ready", "foo/a", "--timeout="+limit.String())
}

// patchFoo changes the Foo, and patchDeployment its Deployment.
func (ns namespace) patchFoo(patch string) {
	ns.Helper()
	ns.kubectl("patch", "foo", "a", "--type=merge", "-p", patch)
}

func (ns namespace) patchDeployment(patch string) {
	ns.Helper()
	ns.kubectl("patch", "deployment", "web", "-p", patch)
}

// result is the result of a run of the plugin.
type result struct {
	out  string // with the errors
	code int
}

// foo runs the plugin in the namespace.
func (ns namespace) foo(args ...string) result {
	ns.Helper()
	command := exec.CommandContext(ns.Context(), plugin, append(args, "--kubeconfig="+kubeconfig, "-n", ns.name)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		ns.Fatal(err)
	}
	return result{out.String(), command.ProcessState.ExitCode()}
}

// check checks the exit code, and that all texts are printed.
func (r result) check(code int, texts ...string) error {
	for _, text := range texts {
		if r.code != code || !strings.Contains(r.out, text) {
			return fmt.Errorf("the exit code is %d, and %q is wanted in:\n%s", r.code, text, r.out)
		}
	}
	return nil
}

// awaitWhy waits until why prints all texts of the Foo.
func (ns namespace) awaitWhy(texts ...string) {
	ns.Helper()
	footest.Must(ns.T, testcluster.Await(ns.Context(), limit, "why says it", func(context.Context) error { return ns.foo("why", "a").check(0, texts...) }))
}
