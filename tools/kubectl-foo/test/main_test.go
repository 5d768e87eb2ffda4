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
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/testcluster"
)

// limit is how long a test waits for a state. It is long because machines may be busy.
const limit = 3 * time.Minute

// env is the cluster of all tests.
var env environment

// environment is a cluster with the programs under test.
type environment struct {
	*testcluster.Cluster

	plugin, controller string
	config             *rest.Config
	kube               kubernetes.Interface
	foo                clientset.Interface
}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	program := os.Getenv("DEVCLUSTER_BIN")
	if program == "" {
		fmt.Println("all tests skipped: DEVCLUSTER_BIN is not set; run make test-kubectl-foo")
		return
	}
	code, err := testWith(m, program)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// testWith builds the programs, starts a cluster with the CustomResourceDefinition, and
// runs the tests.
func testWith(m *testing.M, devcluster string) (int, error) {
	folder, err := os.MkdirTemp("", "kubectl-foo-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	if err := env.build(folder); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	env.Cluster, err = testcluster.StartCluster(ctx, devcluster, filepath.Join(folder, "cluster"), "-audit-bodies=foos.samplecontroller.k8s.io,deployments.apps")
	if err != nil {
		return 1, err
	}
	code, err := 1, env.prepare(ctx)
	if err == nil {
		code = m.Run()
	}
	return code, errors.Join(err, env.Stop())
}

func (e *environment) build(folder string) error {
	e.plugin, e.controller = filepath.Join(folder, "kubectl-foo"), filepath.Join(folder, "sample-controller")
	ctx := context.Background()
	return errors.Join(testcluster.Build(ctx, "..", e.plugin, "."), testcluster.Build(ctx, "../../..", e.controller, "."))
}

func (e *environment) prepare(ctx context.Context) error {
	var err error
	if e.config, err = testcluster.LoadConfig(e.Kubeconfig); err != nil {
		return err
	}
	if e.kube, err = kubernetes.NewForConfig(e.config); err != nil {
		return err
	}
	if e.foo, err = clientset.NewForConfig(e.config); err != nil {
		return err
	}
	if err := testcluster.InstallCRDs(ctx, os.Getenv("DEVCLUSTER_BIN"), e.Kubeconfig, "../../.."); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}
	_, err = e.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// result is how a run of the plugin ended.
type result struct {
	out, errOut string
	code        int
}

// foo runs the plugin with the administrator's account.
func foo(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, append(args, "--kubeconfig="+env.Kubeconfig)...)
}

// run runs the plugin without a kubeconfig.
func run(t *testing.T, args ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), env.plugin, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{out.String(), errOut.String(), command.ProcessState.ExitCode()}
}

// await waits until check returns no error.
func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := testcluster.Await(t.Context(), limit, what, check); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
