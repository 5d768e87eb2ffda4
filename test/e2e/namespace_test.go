// SPDX-License-Identifier: Apache-2.0

// The namespaces of the tests, the waits for objects in them, and the controllers that work
// there.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/testcluster"
)

// runLabel is the label of all namespaces and cluster-scoped objects of a run.
const runLabel = "e2e.samplecontroller.k8s.io/run"

// namespace is a namespace that belongs to one test.
type namespace struct {
	name string
	in   *testCluster
}

func (c *testCluster) createNamespace(ctx context.Context) (*namespace, error) {
	created, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "foo-e2e-",
		Labels:       map[string]string{runLabel: c.run},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	return &namespace{created.Name, c}, nil
}

// newNamespace creates a namespace that is deleted when the test ends. If the test has
// failed, the contents are shown first. Until then a witness checks what the Foos report.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	ns, err := cluster.createNamespace(t.Context())
	footest.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if t.Failed() {
			content, err := ns.in.runKubectl(ctx, "get", "events,"+allResources(), "--namespace="+ns.name, "--output=yaml")
			t.Logf("Objects in %s (%v):\n%s", ns.name, err, content)
		}
		// tidyUp waits until the namespace is gone.
		err := cluster.kube.CoreV1().Namespaces().Delete(ctx, ns.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("Deleting namespace %s: %v", ns.name, err)
		}
	})
	ns.witness(t)
	return ns
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

func (ns *namespace) foos() typedfoo.FooInterface {
	return ns.in.foos.SamplecontrollerV1alpha1().Foos(ns.name)
}

// kubectl runs kubectl in the namespace and returns its output. The test fails if kubectl
// fails.
func (ns *namespace) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return ns.in.kubectl(t, append([]string{"--namespace=" + ns.name}, args...)...)
}

// witness records what the namespace's Foos report, until the test ends or stop is
// called, and fails the test if any report was false. A test that removes the CRD must
// call stop first, because that would leave a gap in the record.
func (ns *namespace) witness(t *testing.T) (stop func()) {
	t.Helper()
	recording, err := oracle.Record(cluster.ctx, ns.in.kube, ns.in.foos, ns.name)
	footest.Must(t, err)
	stop = sync.OnceFunc(func() {
		defer recording.Stop()
		// The context of a test has ended when its cleanup runs.
		ctx, cancel := context.WithTimeout(cluster.ctx, patience)
		defer cancel()
		lies, err := recording.Lies(ctx)
		if err != nil {
			t.Errorf("The record of the Foos in %s is incomplete: %v", ns.name, err)
		}
		for _, lie := range lies {
			t.Errorf("False report: %s", lie)
		}
	})
	t.Cleanup(stop)
	return stop
}

// getter reads objects. Every typed client is one.
type getter[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// get reads an object. The test fails if it does not exist.
func get[T any](t *testing.T, client getter[T], name string) T {
	t.Helper()
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	footest.Must(t, err)
	return object
}

// await waits until the object of a name exists and check accepts it, and returns it.
func await[T any](t *testing.T, want string, client getter[T], name string, check func(T) error) T {
	t.Helper()
	var found T
	awaitThat(t, want, func(ctx context.Context) (err error) {
		if found, err = client.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(found)
	})
	return found
}

// awaitGone waits until no object of a name exists.
func awaitGone[T any](t *testing.T, client getter[T], name string) {
	t.Helper()
	err := testcluster.AwaitAnswer(t.Context(), patience, name+" is gone", func(ctx context.Context) error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return err
	}, apierrors.IsNotFound)
	footest.Must(t, err)
}

// awaitThat waits until check returns no error. After the timeout it fails the test.
func awaitThat(t *testing.T, want string, check func(ctx context.Context) error) {
	t.Helper()
	footest.Must(t, testcluster.Await(t.Context(), patience, want, check))
}

// stopTime bounds the time to stop a program. A controller gives the syncs in progress 20
// seconds.
const stopTime = 30 * time.Second

// process is a running program under test.
type process struct {
	*testcluster.Process
	log *testcluster.Log
}

// startController runs the controller on the namespace with more flags. When the test
// ends it is stopped, and must exit with code 0.
func (ns *namespace) startController(t *testing.T, flags ...string) *process {
	t.Helper()
	own := []string{"-kubeconfig=" + ns.in.account.kubeconfig, "-namespace=" + ns.name}
	return startController(t, append(own, flags...)...)
}

// startController runs the controller with no other flags.
func startController(t *testing.T, flags ...string) *process {
	t.Helper()
	command := exec.CommandContext(cluster.ctx, cluster.controller, flags...)
	// With the detector a controller panics if it changes an object of its caches.
	command.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true")
	p := startProcess(t, command)
	t.Cleanup(func() {
		if !p.HasEnded() {
			p.stop(t)
		}
	})
	return p
}

// startProcess runs a program. If the test fails it shows the program's output.
func startProcess(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	log := &testcluster.Log{}
	command.Stdout, command.Stderr = log, log
	started, err := testcluster.StartProcess(command)
	footest.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Output of %v:\n%s", command.Args, log)
		}
	})
	return &process{started, log}
}

// stop sends SIGTERM, and checks that the program exits in time with code 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	footest.Must(t, p.Signal(syscall.SIGTERM))
	p.expectStop(t)
}

// expectStop waits for the end of a program that stops.
func (p *process) expectStop(t *testing.T) {
	t.Helper()
	p.awaitEnd(t)
	if code := p.State().ExitCode(); code != 0 {
		t.Errorf("After SIGTERM the exit code is %d, want 0", code)
	}
}

// end sends a signal and waits for the end of the program.
func (p *process) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	footest.Must(t, p.Signal(signal))
	p.awaitEnd(t)
}

// awaitEnd waits for the end of the program. It kills one that does not end in time.
func (p *process) awaitEnd(t *testing.T) {
	t.Helper()
	if !p.Wait(stopTime) {
		p.Kill()
		t.Errorf("The program did not end within %v of the signal", stopTime)
	}
}

// awaitLog waits until the log contains a text a number of times.
func (p *process) awaitLog(t *testing.T, text string, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("timeout"))
	defer cancel()
	footest.Must(t, p.log.Await(ctx, p.Process, text, times))
}
