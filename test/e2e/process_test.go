// SPDX-License-Identifier: Apache-2.0

// The controller as a process: how the tests start, signal and stop it.

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/testcluster"
)

// stopTime bounds the time to stop a program. A controller gives the syncs under way 20
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
	return startController(t, append([]string{"-kubeconfig=" + ns.in.account.kubeconfig, "-namespace=" + ns.name}, flags...)...)
}

// startController runs the controller with no other flags.
func startController(t *testing.T, flags ...string) *process {
	t.Helper()
	return startControllerIn(t, nil, flags...)
}

// startControllerIn runs the controller with more environment variables.
func startControllerIn(t *testing.T, environment []string, flags ...string) *process {
	t.Helper()
	command := exec.CommandContext(cluster.ctx, cluster.controller, flags...)
	// With the detector a controller panics if it changes an object of its caches.
	command.Env = append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true"), environment...)
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
	if err != nil {
		t.Fatal(err)
	}
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
	p.signal(t, syscall.SIGTERM)
	if code := p.exitCode(t); code != 0 {
		t.Errorf("After SIGTERM the exit code is %d, want 0", code)
	}
}

// kill ends the program with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.exitCode(t)
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil {
		t.Error(err)
	}
}

// exitCode waits for the end of the program and returns its exit code. It kills a program
// that does not end in time.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	if !p.Wait(stopTime) {
		p.Kill()
		t.Errorf("%v did not end within %v", p.Args(), stopTime)
	}
	return p.State().ExitCode()
}

// awaitLog waits until the log contains a text a number of times.
func (p *process) awaitLog(t *testing.T, text string, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.patience())
	defer cancel()
	if err := p.log.Await(ctx, p.Process, text, times); err != nil {
		t.Fatal(err)
	}
}

// awaitReadyPods waits until a workload has exactly the wanted number of Pods, all bound
// to nodes and ready.
func (ns *namespace) awaitReadyPods(t *testing.T, workload string, want int) []corev1.Pod {
	t.Helper()
	return ns.awaitPods(t, ofWorkload(workload), want)
}

// awaitPods does the same for Pods of a selection.
func (ns *namespace) awaitPods(t *testing.T, of metav1.ListOptions, want int) []corev1.Pod {
	t.Helper()
	list := awaitList(t, fmt.Sprintf("%d Pods of %s are ready", want, of.LabelSelector), ns.pods(), of,
		func(pods *corev1.PodList) error {
			if len(pods.Items) != want {
				return fmt.Errorf("%d Pods, want %d", len(pods.Items), want)
			}
			for i := range pods.Items {
				if err := podReady(&pods.Items[i]); err != nil {
					return err
				}
			}
			return nil
		})
	return list.Items
}

// expectController checks that owner controls an object.
func expectController(t *testing.T, object, owner metav1.Object) {
	t.Helper()
	if !metav1.IsControlledBy(object, owner) {
		t.Errorf("%s is owned by %v, want %s as its controller", object.GetName(), object.GetOwnerReferences(), owner.GetName())
	}
}
