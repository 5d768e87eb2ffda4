// SPDX-License-Identifier: Apache-2.0

// TestMain: whether the tests run, and what happens before and after them; the cluster under test,
// the CustomResourceDefinitions in it, and clusters of a test's own.

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
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/footest"
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

const (
	// moduleRoot is the path of the controller's main package.
	moduleRoot = "../.."
	// patience bounds each wait. Only a test that fails waits that long.
	patience = 4 * time.Minute // images may be pulled
	// timeout is the same for kubectl.
	timeout = "--timeout=4m"

	crdName   = "foos.samplecontroller.k8s.io"
	crdFolder = moduleRoot + "/artifacts/crd"
)

// dryRun makes the API server judge a write without storing it.
var dryRun = []string{metav1.DryRunAll}

// cluster is the cluster under test. TestMain sets it before the first test, and nothing
// changes it afterwards.
var cluster *testCluster

// testCluster is a connection to the cluster under test.
type testCluster struct {
	// ctx ends when the run does.
	ctx    context.Context
	config *rest.Config
	// kubeconfig is a self-contained file with only the current context, so that the user
	// can switch contexts during a run.
	kubeconfig string
	// emulates is the minor version of Kubernetes that the API server emulates, such as
	// 1.35, or "" if none.
	emulates string
	// run is the value of this run's label.
	run string
	// controller is the program under test.
	controller string
	// account is its service account.
	account *account
	// installedCRDs are those that this run installed, and removes at the end.
	installedCRDs []string

	kube    kubernetes.Interface
	foos    clientset.Interface
	dynamic dynamic.Interface
}

// connect makes clients from $E2E_KUBECONFIG, and prints which cluster that is.
func connect(ctx context.Context, folder string) (*testCluster, error) {
	from := os.Getenv("E2E_KUBECONFIG")
	current, err := testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), from, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return nil, fmt.Errorf("E2E_KUBECONFIG=%s: %w", from, err)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(current), 0o600); err != nil {
		return nil, err
	}
	c := &testCluster{ctx: ctx, kubeconfig: kubeconfig, run: rand.String(8), controller: filepath.Join(folder, "sample-controller")}
	release, err := c.connect()
	if err != nil {
		return nil, fmt.Errorf("E2E_KUBECONFIG=%s: %w", from, err)
	}
	fmt.Printf("e2e: testing against %s (Kubernetes %s)\n", c.config.Host, release)
	return c, nil
}

// connect makes clients from the kubeconfig, and asks the API server for its release.
func (c *testCluster) connect() (release string, err error) {
	if c.config, err = testcluster.LoadConfig(c.kubeconfig); err != nil {
		return "", err
	}
	c.config.UserAgent = "sample-controller-e2e"
	var errs [3]error
	c.kube, errs[0] = kubernetes.NewForConfig(c.config)
	c.foos, errs[1] = clientset.NewForConfig(c.config)
	c.dynamic, errs[2] = dynamic.NewForConfig(c.config)
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	server, err := c.kube.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", c.config.Host, err)
	}
	if server.EmulationMajor == "" || server.EmulationMajor == server.Major && server.EmulationMinor == server.Minor {
		return server.GitVersion, nil
	}
	c.emulates = server.EmulationMajor + "." + server.EmulationMinor
	return server.GitVersion + " as " + c.emulates, nil
}

// runKubectl runs kubectl as the administrator and returns its output. A warning of the
// API server is an error.
func (c *testCluster) runKubectl(ctx context.Context, args ...string) (string, error) {
	return testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, append(args, "--warnings-as-errors")...)
}

// kubectl is runKubectl for commands that succeed.
func (c *testCluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.runKubectl(t.Context(), args...)
	footest.Must(t, err)
	return out
}

// newOwnCluster starts a cluster that lasts until the test ends, for a test that changes
// the whole cluster. It has no CRD and no account. It emulates the same Kubernetes as the
// cluster under test, unless flags name another.
func newOwnCluster(t *testing.T, flags ...string) *testCluster {
	t.Helper()
	program := testcluster.Devcluster(t)
	if cluster.emulates != "" {
		flags = append([]string{"-emulated-version=" + cluster.emulates}, flags...)
	}
	started, err := testcluster.StartCluster(cluster.ctx, program, filepath.Join(t.TempDir(), "data"), flags...)
	footest.Must(t, err)
	t.Cleanup(func() {
		if err := started.Stop(); err != nil || t.Failed() {
			t.Errorf("Output of devcluster (%v):\n%s", err, started.Log)
		}
	})
	c := &testCluster{ctx: cluster.ctx, kubeconfig: started.Kubeconfig, run: cluster.run}
	_, err = c.connect()
	footest.Must(t, err)
	return c
}

// inDefault returns the namespace default of the test's own cluster.
func (c *testCluster) inDefault() *namespace { return &namespace{metav1.NamespaceDefault, c} }

var crds = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}.WithResource("customresourcedefinitions")

// installCRDs installs the CRDs that the cluster lacks, and waits until the API server
// serves them. It returns an error if the cluster has another one.
func (c *testCluster) installCRDs(ctx context.Context) error {
	definitions, err := c.render(ctx, crdFolder)
	if err != nil {
		return err
	}
	for _, wanted := range definitions {
		name := wanted.GetName()
		_, err := c.dynamic.Resource(crds).Create(ctx, wanted, metav1.CreateOptions{})
		switch {
		case err == nil:
			c.installedCRDs = append(c.installedCRDs, name)
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("installing the CustomResourceDefinition %s: %w", name, err)
		case !c.has(ctx, wanted):
			return fmt.Errorf("the cluster's %s differs from that in %s: apply that first", name, crdFolder)
		}
		if _, err := c.runKubectl(ctx, "wait", "--for=condition=Established", "crd/"+name, timeout); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the cluster's CRD equals the wanted one. The API server sets
// defaults, so the wanted one is sent as a dry run first.
func (c *testCluster) has(ctx context.Context, wanted *unstructured.Unstructured) bool {
	found, err := c.dynamic.Resource(crds).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err != nil {
		return false
	}
	candidate := found.DeepCopy()
	candidate.Object["spec"] = wanted.Object["spec"]
	result, err := c.dynamic.Resource(crds).Update(ctx, candidate, metav1.UpdateOptions{DryRun: dryRun})
	return err == nil && equality.Semantic.DeepEqual(found.Object["spec"], result.Object["spec"])
}

func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	footest.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
