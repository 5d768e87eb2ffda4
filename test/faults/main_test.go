// SPDX-License-Identifier: Apache-2.0

// The setup of a run: its options, the controllers that are built for it, and the cluster
// with the CustomResourceDefinition, the permissions, the policy, and the accounts that
// controllers connect as.

package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

const (
	// parallel is how many trials run at once. They spend most of their time waiting.
	parallel = "12"
	// waitTimeout bounds each wait for something that must happen. It is no measure of
	// speed: the machine may be slow.
	waitTimeout = 90 * time.Second
	// backoffTimeout is enough for a write that is repeated after a back-off, which grows to
	// 5 minutes.
	backoffTimeout = 4 * waitTimeout
	// rolloutTimeout bounds how much longer the cluster's own controllers may take to
	// roll out a Deployment that is already as requested.
	rolloutTimeout = 10 * time.Minute
)

// testRun holds what the trials of a run share.
type testRun struct {
	cluster *testCluster
	// folder holds programs and kubeconfigs. It is removed at the end.
	folder string
	// subjects are ours and, if the run compares two controllers, upstream's.
	subjects       []*subject
	ours, upstream *subject
	// all is true if every case is run, and not a selection.
	all bool
	// seed determines the selection.
	seed uint64
	rows []*scenario
	// mu guards the results of all rows, and what the subjects can.
	mu sync.Mutex
}

var run testRun

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("FAULTS") != "quick" && os.Getenv("FAULTS") != "all":
		fmt.Println("faults: all tests skipped: FAULTS is neither quick nor all; use make faults or make test-faults")
	case os.Getenv("KUBECONFIG") == "" || os.Getenv("DEVCLUSTER_BIN") == "":
		fmt.Println("faults: all tests skipped: KUBECONFIG or DEVCLUSTER_BIN is not set")
	default:
		code, err := runTests(m)
		if err != nil {
			fmt.Fprintf(os.Stderr, "faults: %v\n", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := flag.Set("test.parallel", parallel); err != nil {
		return 1, err
	}
	flag.Parse() // -parallel overrides it
	run.all, run.rows, run.seed = os.Getenv("FAULTS") == "all", rows(), uint64(rand.Uint32())
	if asked := os.Getenv("FAULTS_SEED"); asked != "" {
		if run.seed, err = strconv.ParseUint(asked, 10, 64); err != nil {
			return 1, fmt.Errorf("FAULTS_SEED: %w", err)
		}
	}
	fmt.Printf("faults: seed %d\n", run.seed)
	if run.folder, err = os.MkdirTemp("", "foo-faults-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(run.folder)
	if run.cluster, err = prepare(ctx, os.Getenv("KUBECONFIG")); err != nil {
		return 1, err
	}
	output := os.Getenv("FAULTS_REPORT")
	if err := buildSubjects(ctx, output != ""); err != nil {
		return 1, err
	}
	code = m.Run()
	found := newPage()
	fmt.Printf("faults: %d trials in %d rows, %d rows failed (seed %d)\n",
		found.Total, found.Ours.Tried, found.Ours.Failed, run.seed)
	if output != "" {
		err = found.write(output)
	}
	return code, errors.Join(err, ctx.Err())
}

func buildSubjects(ctx context.Context, compare bool) error {
	var err error
	if run.ours, err = buildOurs(ctx, filepath.Join(run.folder, "ours")); err != nil {
		return err
	}
	run.subjects = []*subject{run.ours}
	if compare {
		run.upstream, err = buildUpstream(ctx, run.folder)
		run.subjects = append(run.subjects, run.upstream)
	}
	return err
}

// The shipped account and its roles, and another account with the same roles, which may also
// do what only upstream's controller does. The shipped admission policy applies to the first
// only: it restricts this controller to the writes that it is known to make.
const (
	shipped         = testcluster.ServiceAccount
	upstreamAccount = "upstream"
)

// testCluster is a control plane with the Foo API and the accounts.
type testCluster struct {
	kubeconfig string
	config     *rest.Config
	kube       *kubernetes.Clientset
	foos       *clientset.Clientset
	// account and exempt are what a controller connects as. The admission policy applies
	// to account.
	account, exempt *rest.Config
}

// prepare installs the shipped manifests and creates the accounts.
func prepare(ctx context.Context, kubeconfig string) (*testCluster, error) {
	c := &testCluster{kubeconfig: kubeconfig}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	if err := c.kubectl(ctx, "apply", "-f", "testdata/upstream-account.yaml"); err != nil {
		return nil, err
	}
	var err error
	if c.account, err = testcluster.ConfigOf(ctx, c.config, shipped, shipped); err != nil {
		return nil, err
	}
	if c.exempt, err = testcluster.ConfigOf(ctx, c.config, shipped, upstreamAccount); err != nil {
		return nil, err
	}
	children := footest.Primary.Resource
	for _, account := range []*rest.Config{c.account, c.exempt} {
		err := testcluster.AwaitFoosAsOwners(ctx, account, metav1.NamespaceDefault, children, footest.Unstored("foo"))
		if err != nil {
			return nil, err
		}
	}
	return c, testcluster.AwaitPolicy(ctx, c.account, metav1.NamespaceDefault, children, footest.Unstored("nobodys"))
}

// install applies the shipped CustomResourceDefinitions and permissions.
func (c *testCluster) install(ctx context.Context) error {
	if err := testcluster.InstallCRDs(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, moduleRoot); err != nil {
		return err
	}
	return c.kubectl(ctx, "apply", "-k", filepath.Join(moduleRoot, "artifacts/deploy/permissions"))
}

func (c *testCluster) connect() error {
	config, err := testcluster.LoadConfig(c.kubeconfig)
	if err != nil {
		return err
	}
	c.config = config
	var kubeErr, foosErr error
	c.kube, kubeErr = kubernetes.NewForConfig(config)
	c.foos, foosErr = clientset.NewForConfig(config)
	return errors.Join(kubeErr, foosErr)
}

func (c *testCluster) createNamespace(ctx context.Context) (name string, err error) {
	created, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return created.Name, nil
}

func (c *testCluster) kubectl(ctx context.Context, args ...string) error {
	_, err := testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, args...)
	return err
}
