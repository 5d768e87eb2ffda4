// SPDX-License-Identifier: Apache-2.0

// TestMain: whether the tests run, and what happens before and after them.

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/testcluster"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("E2E_KUBECONFIG") == "" || testing.Short() {
		fmt.Println("e2e: all tests skipped: E2E_KUBECONFIG is not set, so there is no cluster to test against, or -short is")
		return
	}
	code, err := testAgainstCluster(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// testAgainstCluster connects, prepares the cluster, runs the tests, and removes what it
// made. It returns the tests' exit code.
func testAgainstCluster(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "foo-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = connect(ctx, folder); err != nil {
		return 1, err
	}
	exitOnSignal(cancel, folder)
	code, err := 1, cluster.prepare(ctx)
	if err == nil {
		code = m.Run()
	}
	return code, errors.Join(err, cluster.tidyUp())
}

// prepare prepares the cluster: the CRDs, the program and its permissions. It returns an
// error if another controller works in the cluster, which would disturb the tests.
func (c *testCluster) prepare(ctx context.Context) error {
	if err := c.installCRDs(ctx); err != nil {
		return err
	}
	ns, err := c.createNamespace(ctx)
	if err != nil {
		return err
	}
	// No controller under test watches this namespace. It takes time to build the program, in which
	// another controller writes the status.
	if _, err := ns.foos().Create(ctx, newFoo("canary", 1), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Foo: %w", err)
	}
	if err := testcluster.Build(ctx, moduleRoot, c.controller, "."); err != nil {
		return err
	}
	if err := ns.createAccount(ctx); err != nil {
		return err
	}
	foo, err := ns.foos().Get(ctx, "canary", metav1.GetOptions{})
	if err == nil && foo.Status.ObservedGeneration > 0 {
		err = errors.New("another controller manages this cluster's Foos: stop it first, because it would disturb the tests")
	}
	return err
}

// exitOnSignal makes a signal end the run early, after the tests' objects are removed.
func exitOnSignal(cancel context.CancelFunc, folder string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "e2e: interrupted: removing the tests' objects")
		cancel() // ends the controllers
		if err := cluster.tidyUp(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		}
		os.RemoveAll(folder)
		os.Exit(130)
	}()
}

// tidyUp deletes the objects of the run and waits until they are gone. The error names
// objects that are left.
func (c *testCluster) tidyUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	ours := "--selector=" + runLabel + "=" + c.run
	err := c.deleteClusterScoped(ctx, ours)
	// Again, because an interrupted test may still create a namespace.
	left := testcluster.Await(ctx, patience, "the namespaces of this run are gone", func(ctx context.Context) error {
		if _, err := c.runKubectl(ctx, "delete", "namespaces", ours, timeout); err != nil {
			return err
		}
		left, err := c.runKubectl(ctx, "get", "namespaces", ours, "--output=name", "--ignore-not-found")
		if err == nil && left != "" {
			err = errors.New("there are " + left)
		}
		return err
	})
	err = errors.Join(err, left)
	for _, name := range c.installedCRDs {
		_, removed := c.runKubectl(ctx, "delete", "crd", name, "--ignore-not-found", timeout)
		err = errors.Join(err, removed)
	}
	return err
}

// clusterScoped are the kinds of the objects that the manifests, and the tests, have outside
// namespaces, except for CRDs.
const clusterScoped = "validatingadmissionpolicybindings,validatingadmissionpolicies,flowschemas," +
	"clusterrolebindings,clusterroles"

// deleteClusterScoped deletes the selected objects outside namespaces.
func (c *testCluster) deleteClusterScoped(ctx context.Context, selector string) error {
	_, err := c.runKubectl(ctx, "delete", clusterScoped, selector)
	return err
}
