// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/internal/testcluster"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// many is the number of Foos of the large cluster.
const many = 2000

// TestPlanOfManyFoos makes a plan for 2,000 Foos that are as asked. It goes by the CPU
// time of the plugin, since machines may be busy.
func TestPlanOfManyFoos(t *testing.T) {
	large := startLargeCluster(t)
	startController(t)
	namespaces := []namespace{newNamespace(t, "team-a"), newNamespace(t, "team-b")}
	for _, ns := range namespaces {
		inParallel(t, many/len(namespaces), func(i int) error {
			object := &samplev1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foo-%d", i)},
				Spec:       samplev1alpha1.FooSpec{DeploymentName: fmt.Sprintf("web-%d", i)},
			}
			_, err := env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Create(t.Context(), object, metav1.CreateOptions{})
			return err
		})
	}
	large.rollOut(t)
	awaitAllReady(t, namespaces...)

	before := large.lists(t)
	got := foo(t, "plan", "-A")
	memory := peakMemory(t, "plan", "-A")
	t.Logf("%d Foos: %v of CPU, %d MiB", many, got.cpu, memory>>20)
	if got.code != 0 || got.out != "Nothing to do: 2000 Foos are as asked.\n" {
		t.Errorf("exit code %d:\n%.1000s%s", got.code, got.out, got.errOut)
	}
	if got.cpu > 2*time.Second || memory > 100<<20 {
		t.Errorf("it took %v of CPU and %d MiB", got.cpu, memory>>20)
	}
	for resource, count := range large.lists(t) {
		if n := count - before[resource]; n != 2 { // once for each run
			t.Errorf("it listed %s %d times in two runs", resource, n)
		}
	}
}

// largeCluster is a cluster without nodes, whose Deployments the test rolls out.
type largeCluster struct{ environment }

// startLargeCluster starts a cluster for this test, and makes it that of the helpers.
func startLargeCluster(t *testing.T) *largeCluster {
	t.Helper()
	small := env
	var err error
	env.Cluster, err = testcluster.StartCluster(t.Context(), os.Getenv("DEVCLUSTER_BIN"), filepath.Join(t.TempDir(), "large"), testcluster.ControlPlaneOnly)
	must(t, err)
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		env = small
	})
	must(t, env.prepare(t.Context()))
	return &largeCluster{env}
}

// rollOut makes the status of each Deployment that of one that is rolled out.
func (c *largeCluster) rollOut(t *testing.T) {
	t.Helper()
	await(t, "each Foo has a Deployment", func(ctx context.Context) error {
		list, err := c.kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{Limit: 1}) // a whole list each time would take most of the time
		if err != nil {
			return err
		}
		if there := len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)); there < many {
			return fmt.Errorf("there are %d", there)
		}
		return nil
	})
	list, err := c.kube.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	inParallel(t, many, func(i int) error {
		d := &list.Items[i]
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		_, err := c.kube.AppsV1().Deployments(d.Namespace).UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
		return err
	})
}

// awaitAllReady asks for one Foo after the other.
func awaitAllReady(t *testing.T, namespaces ...namespace) {
	t.Helper()
	for _, ns := range namespaces {
		for i := range many / len(namespaces) {
			ns.awaitReady(t, fmt.Sprintf("foo-%d", i))
		}
	}
}

// listed matches the API server's counts of lists, as in
// apiserver_request_total{code="200",...,resource="foos",...,verb="LIST",...} 3.
var listed = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(foos|deployments)".*verb="LIST".*\} (\d+)$`)

// lists returns how often the API server was asked for a list, by resource.
func (c *largeCluster) lists(t *testing.T) map[string]int {
	t.Helper()
	text, err := c.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	counts := map[string]int{}
	for _, match := range listed.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(match[2])
		must(t, err)
		counts[match[1]] += n
	}
	if len(counts) != 2 {
		t.Fatalf("the API server counts %v", counts)
	}
	return counts
}

// inParallel calls do with each number below n, and fails with the errors.
func inParallel(t *testing.T, n int, do func(int) error) {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	group.Wait()
	must(t, errors.Join(errs...))
}

// measure makes the test program run another program, and print the peak of its memory.
const measure = "-measure"

// peakMemory returns the peak of the plugin's memory in bytes. A program starts with the
// peak of its parent's, so that a small one has to start it.
func peakMemory(t *testing.T, args ...string) int64 {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	command := exec.CommandContext(t.Context(), self, append([]string{measure, env.plugin, "--kubeconfig=" + env.Kubeconfig}, args...)...)
	out, err := command.Output()
	must(t, err)
	peak, err := strconv.ParseInt(string(out), 10, 64)
	must(t, err)
	return peak
}

// runMeasured runs a program, prints the peak of its memory, and returns the exit code.
func runMeasured(program string, args []string) int {
	command := exec.Command(program, args...)
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 1
	}
	fmt.Print(usage.Maxrss << 10) // Linux counts KiB
	return 0
}
