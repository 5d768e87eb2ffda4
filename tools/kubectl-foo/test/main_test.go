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

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// limit is how long a test waits for a state. It is long because machines may be busy.
const limit = 3 * time.Minute

// tree is the root of this project.
const tree = "../../.."

// devcluster is the path of the program, or "".
var devcluster = os.Getenv("DEVCLUSTER_BIN")

// env is the cluster of all tests, and the programs under test.
var env struct {
	*testcluster.Cluster

	plugin, controller string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if devcluster == "" {
		fmt.Println("all tests skipped: DEVCLUSTER_BIN is not set; run make test-kubectl-foo")
		return
	}
	code, err := testWith(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// testWith builds the programs, starts a cluster with the CustomResourceDefinition, and
// runs the tests.
func testWith(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "kubectl-foo-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	env.plugin, env.controller = filepath.Join(folder, "kubectl-foo"), filepath.Join(folder, "sample-controller")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := errors.Join(testcluster.Build(ctx, "..", env.plugin, "."), testcluster.Build(ctx, tree, env.controller, ".")); err != nil {
		return 1, err
	}
	env.Cluster, err = testcluster.StartCluster(ctx, devcluster, filepath.Join(folder, "cluster"), "-audit-bodies=foos.samplecontroller.k8s.io,deployments.apps")
	if err != nil {
		return 1, err
	}
	err = testcluster.InstallCRDs(ctx, devcluster, env.Kubeconfig, tree)
	if err == nil {
		_, err = testcluster.Kubectl(ctx, devcluster, env.Kubeconfig, "create", "namespace", names.Controller)
	}
	if err != nil {
		return 1, errors.Join(err, env.Stop())
	}
	return m.Run(), env.Stop()
}

// startController starts the controller with leader election, until the test ends.
func startController(t *testing.T) *testcluster.Program {
	t.Helper()
	command := exec.Command(env.controller, "-kubeconfig="+env.Kubeconfig, "-leader-elect", "-leader-elect-resource-namespace="+names.Controller)
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

// namespace is one of a test.
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
	out, err := testcluster.Kubectl(ns.Context(), devcluster, env.Kubeconfig, append(args, "-n", ns.name)...)
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

// manifestOf returns a Foo that asks for a Deployment with two Pods.
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

// result is how a run of the plugin ended.
type result struct {
	out  string // with the errors
	code int
}

// foo runs the plugin in the namespace.
func (ns namespace) foo(args ...string) result {
	ns.Helper()
	command := exec.CommandContext(ns.Context(), env.plugin, append(args, "--kubeconfig="+env.Kubeconfig, "-n", ns.name)...)
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
