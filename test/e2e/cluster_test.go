// SPDX-License-Identifier: Apache-2.0

// The cluster under test, the CustomResourceDefinitions in it, and clusters of a test's own.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
