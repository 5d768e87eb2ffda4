/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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

// parallel is how many tests run at once: they wait for the cluster and use
// little of this machine.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if reason := skipReason(); reason != "" {
		fmt.Println("e2e: all tests skipped: " + reason)
		forgetResult() // the next call may have another reason, or none
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
		return "KUBECONFIG is set, but they run on a cluster only if they are asked for by name: go test ./test/e2e"
	}
	return ""
}

// testAgainstCluster connects, prepares the cluster, runs the tests, and
// removes what it made. It returns the tests' exit code.
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

// prepare makes all ready for the tests: the definition, the program and its rights, and
// how many of them run at once.
func (c *testCluster) prepare(ctx context.Context, folder string) error {
	if err := c.installDefinition(ctx); err != nil {
		return err
	}
	ns, err := c.sendCanary(ctx)
	if err != nil {
		return err
	}
	if err := c.buildController(ctx, filepath.Join(folder, "sample-controller")); err != nil {
		return err
	}
	if err := c.makeAccount(ctx, folder); err != nil {
		return err
	}
	if err := c.lookAtCanary(ctx, ns); err != nil {
		return err
	}
	if !isSet("test.parallel") {
		return flag.Set("test.parallel", parallel)
	}
	return nil
}

// exitOnSignal has a signal end the run early, but not before what the tests
// made is removed. The function returned ends that.
func exitOnSignal(cancel context.CancelFunc, folder string) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		fmt.Fprintln(os.Stderr, "e2e: interrupted: removing what the tests made")
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

// forgetResult keeps the go command from remembering that the tests passed and
// printing "ok (cached)" the next time. It can't know that they depend on a
// cluster, and on the controller's source through a build of their own. It
// remembers nothing where the test's log of the files it read is broken.
func forgetResult() {
	if log := flag.Lookup("test.testlogfile"); log != nil && log.Value.String() != "" {
		_ = os.Truncate(log.Value.String(), 0)
	}
}
