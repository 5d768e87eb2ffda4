// SPDX-License-Identifier: Apache-2.0

// Clusters: the one under test, and those of a test's own; what is installed in them, and the accounts
// that controllers connect as.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// The shipped directories, and names.
const (
	deployFolder      = moduleRoot + "/artifacts/deploy"
	permissionsFolder = deployFolder + "/permissions"
	namespacedFolder  = deployFolder + "/namespaced"
	crdFolder         = moduleRoot + "/artifacts/crd"
	crdName           = "foos.samplecontroller.k8s.io"
	// shipped is the name of the account, of its namespace, of the Lease and of the Deployment, and begins
	// those of the roles. upstreamAccount is another account with the same roles, which may also do what only
	// upstream's controller does. The shipped admission policy applies to the first only: it restricts this
	// controller to the writes that it is known to make.
	shipped         = testcluster.ServiceAccount
	upstreamAccount = "upstream"
	accountFile     = "testdata/upstream-account.yaml"
	// runLabel is the label of all namespaces and cluster-scoped objects of a run.
	runLabel = "e2e.samplecontroller.k8s.io/run"
	// clusterScoped are the kinds of the objects that the manifests, and the tests, have outside
	// namespaces, except for CRDs.
	clusterScoped = "validatingadmissionpolicybindings,validatingadmissionpolicies,flowschemas,clusterrolebindings,clusterroles"
)

// dryRun makes the API server judge a write without storing it.
var dryRun = []string{metav1.DryRunAll}

// testCluster is a connection to a cluster as its administrator.
type testCluster struct {
	config *rest.Config
	// kubeconfig is a self-contained file with only the current context, so that the user
	// can switch contexts during a run.
	kubeconfig string
	// emulates is the minor version of Kubernetes that the API server emulates, such as
	// 1.35, or "" if none.
	emulates string
	kube     kubernetes.Interface
	foos     clientset.Interface
	dynamic  dynamic.Interface
	// account and exempt are what a controller connects as. The admission policy applies
	// to account.
	account, exempt *account
	// hadCRDs is true if the CustomResourceDefinitions are older than the run, and isInstalled if it has
	// begun to install the rest.
	hadCRDs, isInstalled bool
}

// account is a service account.
type account struct {
	*rest.Config

	namespace string
}

// connectTo makes clients from the current context of a kubeconfig, and prints which cluster that is.
func connectTo(ctx context.Context, from string) (*testCluster, error) {
	current, err := testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), from, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", from, err)
	}
	c := &testCluster{kubeconfig: filepath.Join(run.folder, "kubeconfig")}
	if err := os.WriteFile(c.kubeconfig, []byte(current), 0o600); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	release, err := c.release()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", from, err)
	}
	fmt.Printf("e2e: testing against %s (Kubernetes %s)\n", c.config.Host, release)
	return c, nil
}

// connect makes clients from the kubeconfig.
func (c *testCluster) connect() (err error) {
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

// release asks the API server for its release, and which it emulates.
func (c *testCluster) release() (string, error) {
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

// checkUnused returns an error if the cluster has an installation of the controller, or another
// CustomResourceDefinition.
func (c *testCluster) checkUnused(ctx context.Context) error {
	found, err := c.runKubectl(ctx, "get", "namespace", shipped, "--ignore-not-found", "-o=name")
	if err == nil && found != "" {
		err = fmt.Errorf("the cluster has the %s: uninstall the controller first, or what an earlier run left, "+
			"with 'kubectl delete -k artifacts/deploy/permissions'", found)
	}
	if err != nil {
		return err
	}
	found, err = c.runKubectl(ctx, "get", "-k", crdFolder, "--ignore-not-found", "-o=name")
	if c.hadCRDs = found != ""; err == nil && c.hadCRDs {
		if _, err = c.runKubectl(ctx, "diff", "--server-side", "--force-conflicts", "-k", crdFolder); err != nil {
			err = fmt.Errorf("the cluster's CustomResourceDefinitions differ from those in artifacts/crd: apply those first: %w", err)
		}
	}
	return err
}

// install applies the shipped CustomResourceDefinitions and permissions, and those of upstreamAccount.
func (c *testCluster) install(ctx context.Context) error {
	c.isInstalled = true
	if err := testcluster.InstallCRDs(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, moduleRoot); err != nil {
		return err
	}
	_, err := c.runKubectl(ctx, "apply", "--server-side", "-k="+permissionsFolder)
	if err == nil {
		_, err = c.runKubectl(ctx, "apply", "-f="+accountFile)
	}
	return err
}

// awaitInForce waits until what is installed is in force, and connects as the accounts.
func (c *testCluster) awaitInForce(ctx context.Context) (err error) {
	if c.account, err = c.accountOf(ctx, shipped, shipped); err != nil {
		return err
	}
	if c.exempt, err = c.accountOf(ctx, shipped, upstreamAccount); err != nil {
		return err
	}
	const in = metav1.NamespaceDefault
	return errors.Join(c.account.awaitFoosAsOwners(ctx, in), c.exempt.awaitFoosAsOwners(ctx, in), c.account.awaitPolicies(ctx, in))
}

// accountOf returns an existing account, with a new token.
func (c *testCluster) accountOf(ctx context.Context, namespace, name string) (*account, error) {
	config, err := testcluster.ConfigOf(ctx, c.config, namespace, name)
	return &account{config, namespace}, err
}

// awaitFoosAsOwners waits until the account may create a child that a Foo of a
// namespace owns.
func (a *account) awaitFoosAsOwners(ctx context.Context, namespace string) error {
	return testcluster.AwaitFoosAsOwners(ctx, a.Config, namespace, footest.Primary.Resource, footest.Unstored("made-up"))
}

// awaitPolicies waits until the admission policy of each kind of children refuses one without
// an owner in a namespace.
func (a *account) awaitPolicies(ctx context.Context, namespace string) error {
	for _, kind := range kindsOfChildren() {
		foo := kind.Owner().New("nobodys", "nobodys", 0)
		foo.SetNamespace("")
		kind.Ask(foo)
		if err := testcluster.AwaitPolicy(ctx, a.Config, namespace, kind.Resource, kind.New(foo)); err != nil {
			return err
		}
	}
	return nil
}

// tidyUp deletes the objects of the run and waits until they are gone.
func (c *testCluster) tidyUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	ours := "--selector=" + runLabel + "=" + run.id
	remove := func(args ...string) error {
		_, err := c.runKubectl(ctx, append([]string{"delete", "--ignore-not-found", timeout}, args...)...)
		return err
	}
	// Namespaces first, because their Foos need the CustomResourceDefinition; and again, because an
	// interrupted test may still create one.
	err := errors.Join(remove("namespaces", ours), remove(clusterScoped, ours), remove("namespaces", ours))
	if c.isInstalled {
		err = errors.Join(err, remove("-f="+accountFile), remove("-k="+permissionsFolder))
		if !c.hadCRDs {
			err = errors.Join(err, remove("-k="+crdFolder))
		}
	}
	return err
}

// createNamespace creates one with the run's label.
func (c *testCluster) createNamespace(ctx context.Context) (name string, err error) {
	created, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "foo-e2e-", Labels: map[string]string{runLabel: run.id},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return created.Name, nil
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
	if run.cluster.emulates != "" {
		flags = append([]string{"-emulated-version=" + run.cluster.emulates}, flags...)
	}
	started, err := testcluster.StartCluster(run.ctx, program, filepath.Join(t.TempDir(), "data"), flags...)
	footest.Must(t, err)
	t.Cleanup(func() {
		if err := started.Stop(); err != nil || t.Failed() {
			t.Errorf("Output of devcluster (%v):\n%s", err, started.Log)
		}
	})
	c := &testCluster{kubeconfig: started.Kubeconfig}
	footest.Must(t, c.connect())
	_, err = c.release()
	footest.Must(t, err)
	return c
}

// manifests are objects as they are applied.
type manifests []*unstructured.Unstructured

// objectsOf returns the objects of a rendered directory.
func objectsOf(t *testing.T, folder string) (objects manifests) {
	t.Helper()
	text := run.cluster.kubectl(t, "kustomize", folder)
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		footest.Must(t, err)
		objects = append(objects, object)
	}
}

// writeOverlay writes a kustomization with one of the shipped directories as its base, and
// returns its directory.
func writeOverlay(t *testing.T, base, text string) string {
	t.Helper()
	folder := t.TempDir()
	base, err := filepath.Abs(base)
	footest.Must(t, err)
	base, err = filepath.Rel(folder, base)
	footest.Must(t, err)
	writeFile(t, folder, "kustomization.yaml", text+"resources: ['"+filepath.ToSlash(base)+"']\n")
	return folder
}

func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	footest.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
