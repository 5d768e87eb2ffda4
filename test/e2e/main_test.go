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
	"path/filepath"
	"syscall"
	"testing"
)

// parallel is the number of parallel tests. It is high because the tests mostly wait for
// the cluster.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if reason := skipReason(); reason != "" {
		fmt.Println("e2e: all tests skipped: " + reason)
		forgetResult() // the next run may have another reason, or none
		return
	}
	code, err := testAgainstCluster(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		code = max(code, 1)
	}
	forgetResult()
	os.Exit(code)
}

func skipReason() string {
	switch {
	case os.Getenv("KUBECONFIG") == "":
		return "KUBECONFIG is not set, so there is no cluster to test against"
	case testing.Short():
		return "-short"
	case matchedByPattern(parentCommandLine()):
		return "KUBECONFIG is set, but the tests use it only if the package is named: go test ./test/e2e"
	}
	return ""
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
	cluster, err = connect(ctx, folder)
	if err != nil {
		return 1, err
	}
	fmt.Println("e2e: testing against " + cluster.description)

	defer exitOnSignal(cancel, folder)()
	code, err := 1, cluster.prepare(ctx, folder)
	if err == nil {
		code = m.Run()
	}
	return code, errors.Join(err, cluster.tidyUp())
}

// prepare prepares the cluster: the CRD, the program and its permissions. It also sets
// the number of parallel tests.
func (c *testCluster) prepare(ctx context.Context, folder string) error {
	if err := c.installCRD(ctx); err != nil {
		return err
	}
	ns, err := c.createCanary(ctx)
	if err != nil {
		return err
	}
	if err := c.buildController(ctx, filepath.Join(folder, "sample-controller")); err != nil {
		return err
	}
	if err := c.makeAccount(ctx, folder); err != nil {
		return err
	}
	if err := c.checkCanary(ctx, ns); err != nil {
		return err
	}
	if !isSet("test.parallel") {
		return flag.Set("test.parallel", parallel)
	}
	return nil
}

// exitOnSignal makes a signal end the run early, after the tests' objects are removed.
// The returned function restores the signals.
func exitOnSignal(cancel context.CancelFunc, folder string) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		fmt.Fprintln(os.Stderr, "e2e: interrupted: removing the tests' objects")
		cancel() // ends the controllers
		if err := cluster.tidyUp(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		}
		os.RemoveAll(folder)
		os.Exit(130)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// forgetResult stops the go command from caching the result. It can't know that the tests
// depend on a cluster, and on the controller's source, which they build themselves. It
// caches nothing if the log of the files that a test has read is broken.
func forgetResult() {
	if log := flag.Lookup("test.testlogfile"); log != nil && log.Value.String() != "" {
		_ = os.Truncate(log.Value.String(), 0)
	}
}
