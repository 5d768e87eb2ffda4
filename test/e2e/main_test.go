// SPDX-License-Identifier: Apache-2.0

// TestMain: whether and which tests run, what happens before and after them, and what they share.

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

const (
	// moduleRoot is the path of the controller's main package.
	moduleRoot = "../.."
	// patience bounds each wait of the tests of the contract and of the installation, in which images may
	// be pulled, and timeout is the same for kubectl. Only a test that fails waits that long.
	patience = 4 * time.Minute
	timeout  = "--timeout=4m"
)

// testRun holds what the tests of a run share.
type testRun struct {
	// ctx ends when the run does.
	ctx context.Context
	// id is the value of the run's label.
	id      string
	cluster *testCluster
	// folder holds programs and kubeconfigs. It is removed at the end.
	folder string
	// subjects are ours and, if the run compares two controllers, upstream's.
	subjects       []*subject
	ours, upstream *subject
	// all is true if every case of the faults is run, and not a selection, which seed determines.
	all  bool
	seed uint64
	rows []*scenario
	// mu guards the results of all rows, and what the subjects can.
	mu sync.Mutex
}

var run testRun

func TestMain(m *testing.M) {
	flag.Parse()
	kubeconfig, faults := os.Getenv("E2E_KUBECONFIG"), os.Getenv("FAULTS")
	if faults != "" {
		kubeconfig = os.Getenv("KUBECONFIG")
	}
	if kubeconfig == "" || testing.Short() {
		fmt.Println("e2e: all tests skipped: neither E2E_KUBECONFIG is set nor, for FAULTS, KUBECONFIG, " +
			"so there is no cluster to test against, or -short is")
		return
	}
	code, err := runTests(m, kubeconfig, faults)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// runTests connects, prepares the cluster, runs the tests, and removes what they made. It returns the
// tests' exit code. The cluster of the faults is deleted with the run.
func runTests(m *testing.M, kubeconfig, faults string) (code int, err error) {
	folder, err := os.MkdirTemp("", "foo-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run = testRun{ctx: ctx, folder: folder, id: strconv.FormatUint(uint64(rand.Uint32()), 36)}
	if run.cluster, err = connectTo(run.ctx, kubeconfig); err != nil {
		return 1, err
	}
	exitOnSignal(cancel)
	if err := errors.Join(chooseTests(faults), prepareRun(faults)); err != nil {
		return 1, errors.Join(err, run.cluster.tidyUp())
	}
	code = m.Run()
	if faults != "" {
		return code, reportFaults()
	}
	return code, run.cluster.tidyUp()
}

// faultTests are the tests of the table of faults. Without FAULTS, all others run.
const faultTests = "^Test(Workloads|Faults|ControlPlane|TheHarnessCanFail)$"

// chooseTests restricts what -run and -skip say to the faults, unless -run names tests itself, or to the other tests.
func chooseTests(faults string) (err error) {
	if faults == "" {
		return flag.Set("test.skip", strings.Trim(faultTests+"|"+flag.Lookup("test.skip").Value.String(), "|"))
	}
	if asked := flag.Lookup("test.run").Value.String(); asked == "" || strings.HasPrefix(asked, "/") {
		err = flag.Set("test.run", faultTests+asked)
	}
	run.all, run.rows, run.seed = faults == "all", allRows(), uint64(rand.Uint32())
	if asked := os.Getenv("FAULTS_SEED"); asked != "" && err == nil {
		run.seed, err = strconv.ParseUint(asked, 10, 64)
	}
	fmt.Printf("faults: seed %d\n", run.seed)
	return err
}

// prepareRun prepares the cluster, and builds the programs. It returns an error if another controller works in
// the cluster, which would disturb the tests.
func prepareRun(faults string) error {
	ctx := run.ctx
	if err := run.cluster.checkUnused(ctx); err != nil {
		return err
	}
	if err := run.cluster.install(ctx); err != nil {
		return err
	}
	ns, err := run.cluster.createNamespace(ctx)
	if err != nil {
		return err
	}
	// No controller under test watches this namespace. It takes time to build the program, in which
	// another controller writes the status.
	foos := run.cluster.foos.SamplecontrollerV1alpha1().Foos(ns)
	if _, err := foos.Create(ctx, newFoo("canary", "canary", 0), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Foo: %w", err)
	}
	if run.ours, err = buildOurs(ctx, filepath.Join(run.folder, "ours")); err != nil {
		return err
	}
	run.subjects = []*subject{run.ours}
	if os.Getenv("FAULTS_REPORT") != "" && faults != "" {
		if run.upstream, err = buildUpstream(ctx); err != nil {
			return err
		}
		run.subjects = append(run.subjects, run.upstream)
	}
	if err := run.cluster.awaitInForce(ctx); err != nil {
		return err
	}
	foo, err := foos.Get(ctx, "canary", metav1.GetOptions{})
	if err == nil && foo.Status.ObservedGeneration > 0 {
		err = errors.New("another controller manages this cluster's Foos: stop it first, because it would disturb the tests")
	}
	return err
}

// exitOnSignal makes a signal end the run early, after the tests' objects are removed.
func exitOnSignal(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "e2e: interrupted: removing the tests' objects")
		cancel() // ends the controllers
		if err := run.cluster.tidyUp(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		}
		os.RemoveAll(run.folder)
		os.Exit(130)
	}()
}

// subject is a controller under test: any program that takes -kubeconfig.
type subject struct {
	name string
	path string
	// version is the version of upstream's module.
	version string
	// flags are passed in addition to -kubeconfig.
	flags []string
	// isUpstream is true for upstream's controller. It takes no -namespace, so the proxy confines
	// it to one. It has no conditions and no observedGeneration, which the oracle checks of ours.
	// At each resync it writes a status and an Event for each Foo, by design: one row checks for
	// that, and the others ignore it, so that each finds its own problem.
	isUpstream bool
	// writes is how many writes each workload makes without a fault: 0 if it fails. One that
	// was not run, because of -run, is missing.
	writes map[string]int
}

// can reports whether the controller passes a workload without a fault, and makes as many
// writes then.
func (s *subject) can(workload string, writes int) bool {
	run.mu.Lock()
	defer run.mu.Unlock()
	found, known := s.writes[workload]
	return !known || found >= max(writes, 1)
}

func (s *subject) setWrites(workload string, writes int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	s.writes[workload] = writes
}

// buildOurs builds the controller from a copy of this repository's root module. It runs
// without resyncs, so that they repair nothing.
func buildOurs(ctx context.Context, output string, flags ...string) (*subject, error) {
	if err := testcluster.Build(ctx, moduleRoot, output, ".", flags...); err != nil {
		return nil, err
	}
	return &subject{name: "ours", path: output, flags: []string{"-resync=0", "-v=2"}, writes: map[string]int{}}, nil
}

// buildUpstream builds kubernetes/sample-controller in the version that test/thirdparty
// requires. Its resync of 30 s can't be turned off.
func buildUpstream(ctx context.Context) (*subject, error) {
	const module = "k8s.io/sample-controller"
	source, output := filepath.Join(moduleRoot, "test/thirdparty"), filepath.Join(run.folder, "upstream")
	if err := testcluster.Build(ctx, source, output, module); err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	list.Dir = source
	version, err := list.Output()
	if err != nil {
		return nil, err
	}
	return &subject{
		name: "upstream", path: output, version: strings.TrimSpace(string(version)),
		isUpstream: true, writes: map[string]int{"adopt": 0},
	}, nil
}

// kindsOfChildren are those of all owners.
func kindsOfChildren() (kinds []*footest.Kind) {
	for _, owner := range footest.Owners {
		kinds = append(kinds, owner.Kinds...)
	}
	return kinds
}

// allResources are those of owners and children, as kubectl get wants them.
func allResources() string {
	var resources []string
	for _, owner := range footest.Owners {
		for _, kind := range slices.Concat(owner.Kinds, []*footest.Kind{owner.Kind}) {
			resources = append(resources, kind.Resource.GroupResource().String())
		}
	}
	return strings.Join(resources, ",")
}
