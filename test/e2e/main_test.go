// SPDX-License-Identifier: Apache-2.0

// TestMain: whether the tests run, and what happens before and after them.

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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

// matchedByPattern reports whether the command line of a go command names packages by a
// pattern, as in "go test ./...". Whoever types that wants to test the code, and not the
// cluster that the shell happens to have in KUBECONFIG.
func matchedByPattern(commandLine []string) bool {
	return slices.ContainsFunc(commandLine, func(argument string) bool {
		return !strings.HasPrefix(argument, "-") && strings.HasSuffix(argument, "...")
	})
}

// parentCommandLine returns the command line of the parent process, or nil if it can't be
// read.
func parentCommandLine() []string {
	parent := strconv.Itoa(os.Getppid())
	if line, err := os.ReadFile("/proc/" + parent + "/cmdline"); err == nil {
		return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	if line, err := exec.Command("ps", "-o", "args=", "-p", parent).Output(); err == nil {
		return strings.Fields(string(line))
	}
	return nil
}

// TestPatternsAreRecognized needs no cluster, but it is in this package because it is
// about skipping the package's tests.
func TestPatternsAreRecognized(t *testing.T) {
	for line, want := range map[string]bool{
		"go test ./...":                             true,
		"go test -count=1 ./test/...":               true,
		"go test example.com/sample-controller/...": true,
		"go test ./test/e2e":                        false,
		"go test -v -run=Test... ./test/e2e":        false,
		"go test":                                   false,
		"":                                          false,
	} {
		if got := matchedByPattern(strings.Fields(line)); got != want {
			t.Errorf("%q is matched by a pattern: %v, want %v", line, got, want)
		}
	}
}

// canary is the name of a Foo in a namespace that no controller under test watches.
const canary = "canary"

// createCanary creates the canary and returns its namespace. It is called early, to give
// another controller in the cluster time to write the status.
func (c *testCluster) createCanary(ctx context.Context) (*namespace, error) {
	created, err := c.createNamespace(ctx)
	if err != nil {
		return nil, err
	}
	ns := &namespace{name: created.Name, in: c}
	if _, err := ns.foos().Create(ctx, newFoo(canary), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating a Foo: %w", err)
	}
	return ns, nil
}

// checkCanary sets otherController if a controller has written the canary's status.
func (c *testCluster) checkCanary(ctx context.Context, ns *namespace) error {
	foo, err := ns.foos().Get(ctx, canary, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading a Foo: %w", err)
	}
	reason := readyOf(foo).Reason
	c.otherController = reason != "" && reason != samplev1alpha1.ReasonPending || foo.Status.ObservedGeneration > 0
	if c.otherController {
		fmt.Println("e2e: another controller manages this cluster's Foos: the tests that it would disturb are skipped")
	}
	return nil // tidyUp deletes the canary
}

func (c *testCluster) createNamespace(ctx context.Context) (*corev1.Namespace, error) {
	created, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "foo-e2e-",
		Labels:       map[string]string{runLabel: c.run},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	return created, nil
}

// needsNoOtherController skips a test if another controller in the cluster would disturb
// it.
func needsNoOtherController(t *testing.T) {
	t.Helper()
	if cluster.otherController {
		t.Skip("another controller manages this cluster's Foos")
	}
}

// tidyUp deletes the objects of the run and waits until they are gone. The error names
// objects that are left.
func (c *testCluster) tidyUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	err := errors.Join(c.removeClusterScoped(ctx), c.removeNamespaces(ctx))
	if c.crd == crdInstalled {
		err = errors.Join(err, c.removeCRD(ctx, crdName))
	}
	for _, name := range c.otherCRDs {
		err = errors.Join(err, c.removeCRD(ctx, name))
	}
	return err
}

// removeNamespaces deletes the run's namespaces, including those that a test still
// creates after an interruption.
func (c *testCluster) removeNamespaces(ctx context.Context) error {
	client := c.kube.CoreV1().Namespaces()
	ours := c.ofThisRun()
	_, err := untilList(ctx, client, ours, func(list *corev1.NamespaceList) error {
		var errs []error
		for i := range list.Items {
			ns := &list.Items[i]
			errs = append(errs, fmt.Errorf("namespace %s is left: see kubectl get namespaces -l %s", ns.Name, ours.LabelSelector))
			if ns.DeletionTimestamp != nil {
				continue
			}
			if err := client.Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("deleting it: %w", err))
			}
		}
		return errors.Join(errs...)
	})
	return err
}

func (c *testCluster) ofThisRun() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: runLabel + "=" + c.run}
}

// removeClusterScoped deletes the run's cluster-scoped objects: roles, admission
// policies, webhooks and flow schemas, including those that an interrupted test has left.
func (c *testCluster) removeClusterScoped(ctx context.Context) error {
	admission, rbac := c.kube.AdmissionregistrationV1(), c.kube.RbacV1()
	now, ours := metav1.DeleteOptions{}, c.ofThisRun()
	return errors.Join(
		admission.MutatingWebhookConfigurations().DeleteCollection(ctx, now, ours),
		admission.ValidatingWebhookConfigurations().DeleteCollection(ctx, now, ours),
		admission.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, now, ours),
		admission.ValidatingAdmissionPolicies().DeleteCollection(ctx, now, ours),
		c.kube.FlowcontrolV1().FlowSchemas().DeleteCollection(ctx, now, ours),
		rbac.ClusterRoleBindings().DeleteCollection(ctx, now, ours),
		rbac.ClusterRoles().DeleteCollection(ctx, now, ours))
}

func (c *testCluster) removeCRD(ctx context.Context, name string) error {
	client := crdClient(c.dynamic)
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the CustomResourceDefinition that this run installed: %w", err)
	}
	_, err := untilList(ctx, client, named(name), func(list *unstructured.UnstructuredList) error {
		if len(list.Items) > 0 {
			return fmt.Errorf("CustomResourceDefinition %s is not gone yet", name)
		}
		return nil
	})
	return err
}
