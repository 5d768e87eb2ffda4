// SPDX-License-Identifier: Apache-2.0

// The connection to the cluster under test, which kind of cluster it is, and clusters of a
// test's own.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/testcluster"
)

// moduleRoot is the path of the controller's main package.
const moduleRoot = "../.."

// The label of a node whose kubelet KWOK simulates.
const (
	kwokLabel = "kwok.x-k8s.io/node"
	kwokValue = "fake"
)

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
	kubeconfig  string
	description string
	// devcluster is true if KWOK simulates every node: Pods become Ready at once without
	// running, and nobody needs them.
	devcluster bool
	// emulates is the minor version of Kubernetes that the API server emulates, such as
	// 1.35, or "" if none.
	emulates string
	// run is the value of this run's label.
	run string
	// controller is the program under test.
	controller string
	// account is its service account.
	account *account
	// crd says where the CustomResourceDefinition in the cluster came from.
	crd crdState
	// otherCRDs are those of the program's other kinds that this run installed.
	otherCRDs []string
	// otherController is true if a controller that this run did not start works in the
	// cluster.
	otherController bool

	kube    kubernetes.Interface
	foos    clientset.Interface
	dynamic dynamic.Interface
}

// connect makes clients from $KUBECONFIG and describes the cluster.
func connect(ctx context.Context, folder string) (*testCluster, error) {
	c := &testCluster{ctx: ctx, kubeconfig: filepath.Join(folder, "kubeconfig"), run: rand.String(8)}
	if err := writeCurrentContext(c.kubeconfig); err != nil {
		return nil, fmt.Errorf("KUBECONFIG=%s: %w", os.Getenv("KUBECONFIG"), err)
	}
	if err := c.makeClients(); err != nil {
		return nil, fmt.Errorf("KUBECONFIG=%s: %w", os.Getenv("KUBECONFIG"), err)
	}
	return c, c.describe(ctx)
}

// makeClients makes clients from the kubeconfig.
func (c *testCluster) makeClients() error {
	var err error
	if c.config, err = testcluster.LoadConfig(c.kubeconfig); err != nil {
		return err
	}
	c.config.UserAgent = "sample-controller-e2e"
	var errs [3]error
	c.kube, errs[0] = kubernetes.NewForConfig(c.config)
	c.foos, errs[1] = clientset.NewForConfig(c.config)
	c.dynamic, errs[2] = dynamic.NewForConfig(c.config)
	return errors.Join(errs[:]...)
}

// describe finds out which kind of cluster this is.
func (c *testCluster) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of %s: %w", c.config.Host, err)
	}
	server, err := c.kube.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", c.config.Host, err)
	}
	c.devcluster = allSimulated(nodes.Items)
	c.emulates = emulatedBy(server)
	kind := "not a development cluster"
	if c.devcluster {
		kind = "a development cluster"
	}
	release := server.GitVersion
	if c.emulates != "" {
		release += " as " + c.emulates
	}
	c.description = fmt.Sprintf("%s (Kubernetes %s, %d nodes, %s)", c.config.Host, release, len(nodes.Items), kind)
	return nil
}

// allSimulated reports whether KWOK simulates all nodes, as in a development cluster.
func allSimulated(nodes []corev1.Node) bool {
	for i := range nodes {
		if nodes[i].Labels[kwokLabel] != kwokValue {
			return false
		}
	}
	return len(nodes) > 0
}

// patience bounds each wait. Only a test that fails waits that long.
func (c *testCluster) patience() time.Duration {
	if c.devcluster {
		return 2 * time.Minute
	}
	return 4 * time.Minute // images are pulled
}

// buildController compiles the program under test.
func (c *testCluster) buildController(ctx context.Context, output string) error {
	if err := testcluster.Build(ctx, moduleRoot, output, "."); err != nil {
		return err
	}
	c.controller = output
	return nil
}

// writeCurrentContext writes a kubeconfig with only the current context.
func writeCurrentContext(path string) error {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return err
	}
	if len(config.Contexts) == 0 {
		return errors.New("it names no cluster, or does not exist")
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, path)
}

// newOwnCluster starts a cluster that lasts until the test ends, for a test that changes
// the whole cluster. It has no CRD and no account.
func newOwnCluster(t *testing.T, flags ...string) *testCluster {
	t.Helper()
	return clusterAt(t, startCluster(t, needsDevclusterProgram(t), flags...))
}

// startCluster starts a cluster that lasts until the test ends, and returns its
// kubeconfig. It emulates the same Kubernetes as the cluster under test, unless flags
// name another.
func startCluster(t *testing.T, devcluster string, flags ...string) string {
	t.Helper()
	if cluster.devcluster && cluster.emulates != "" {
		flags = append([]string{"-emulated-version=" + cluster.emulates}, flags...)
	}
	c, err := testcluster.StartCluster(cluster.ctx, devcluster, filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil || t.Failed() {
			t.Errorf("Output of devcluster (%v):\n%s", err, c.Log)
		}
	})
	return c.Kubeconfig
}

// newBareCluster starts a cluster with only an API server and etcd, so that no Pod ever
// runs.
func newBareCluster(t *testing.T) *testCluster {
	t.Helper()
	return newOwnCluster(t, testcluster.ControlPlaneOnly)
}

// clusterAt connects to a cluster that the test has started.
func clusterAt(t *testing.T, kubeconfig string) *testCluster {
	t.Helper()
	c := &testCluster{ctx: cluster.ctx, kubeconfig: kubeconfig, devcluster: true, run: cluster.run}
	if err := c.makeClients(); err != nil {
		t.Fatal(err)
	}
	server, err := c.kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	c.emulates = emulatedBy(server)
	return c
}

// newNamespace creates a namespace that lasts as long as the test's own cluster.
func (c *testCluster) newNamespace(t *testing.T) *namespace {
	t.Helper()
	created, err := c.createNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{name: created.Name, in: c}
}

// inDefault returns the namespace default of the test's own cluster.
func (c *testCluster) inDefault() *namespace {
	return &namespace{name: metav1.NamespaceDefault, in: c}
}

// TestTheManifestsInstallTheControllerOnAnOldKubernetes tests the installation on the
// oldest release that devcluster emulates. "make skew" runs all tests on each release.
func TestTheManifestsInstallTheControllerOnAnOldKubernetes(t *testing.T) {
	t.Parallel()
	oldest := oldestEmulated(t)
	s := newSite(newOwnCluster(t, "-nodes=2", "-emulated-version="+oldest))
	if s.emulates != oldest {
		t.Errorf("The API server emulates %q, want %s", s.emulates, oldest)
	}
	s.checkInstallation(t, deployFolder, "yes\n")
}

// oldestEmulated returns the oldest release of Kubernetes that devcluster can emulate.
func oldestEmulated(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), needsDevclusterProgram(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "\nEmulates ")
	versions := strings.Fields(list)
	if len(versions) == 0 {
		t.Fatalf("devcluster version names no release that it can emulate:\n%s", out)
	}
	return versions[0]
}

// emulatedBy returns the minor version that an API server emulates, or "" if none.
func emulatedBy(server *version.Info) string {
	if server.EmulationMajor == "" || server.EmulationMajor == server.Major && server.EmulationMinor == server.Minor {
		return ""
	}
	return server.EmulationMajor + "." + server.EmulationMinor
}
