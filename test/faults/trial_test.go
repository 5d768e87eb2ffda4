// SPDX-License-Identifier: Apache-2.0

// A trial: one controller or more in a namespace, each behind a proxy. Like the functions of
// a test, its methods return nothing if they succeed, and end the trial if they fail.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/testcluster"
)

// trial is a namespace with the controllers under test, usually one.
type trial struct {
	ctx     context.Context
	subject *subject
	cluster *testCluster
	// account is what the controllers connect as.
	account *rest.Config
	// plane is set for a row that breaks the control plane.
	plane *controlPlane
	ns    string
	// everywhere is true if the controllers work in all namespaces, and not only in ns. It
	// needs its own control plane.
	everywhere bool
	// http2 is true if the controllers use HTTP/2, whose pings find dead connections.
	http2  bool
	folder string
	// timeout bounds each wait.
	timeout time.Duration
	// replicas are the controllers, each behind its own proxy.
	replicas []*replica
	// phase says what is going on, for the message of a failure.
	phase string
	// outcome is the error that ended the trial, or nil. The neighbors of the trial share it.
	outcome *error
	// expected is what the oracle takes into account.
	expected expected
	// recording has the statuses of the Foos. falsehoods are the false statuses of recordings
	// that have ended, and the errors of recording.
	recording  *oracle.Recording
	falsehoods []error
	// applied are the files with the policies and webhooks of the trial. changedCRD is true
	// if it has patched the CRD.
	applied    []string
	changedCRD bool
}

// replica is a controller and its way to the API server.
type replica struct {
	*program
	proxy      *proxy.Proxy
	kubeconfig string
	// env is added to the environment.
	env []string
}

// newTrial creates the namespace, which is deleted when the test ends.
func (sc *scenario) newTrial(t *testing.T, c *testCluster, s *subject) *trial {
	t.Helper()
	ns, err := c.createNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{
		ctx: t.Context(), subject: s, cluster: c, ns: ns, account: c.account, folder: t.TempDir(), timeout: waitTimeout,
		outcome: new(error), expected: newExpected(),
	}
	if sc.exempt || s.isUpstream {
		tr.account = c.exempt
	}
	t.Cleanup(tr.close)
	if err := tr.startRecording(); err != nil {
		t.Fatal(err)
	}
	return tr
}

// close ends the controllers, and deletes what the trial has created.
func (tr *trial) close() {
	for _, r := range tr.replicas {
		r.close()
		r.proxy.Close()
	}
	var cancel context.CancelFunc
	tr.ctx, cancel = context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	for _, file := range tr.applied {
		_ = tr.cluster.kubectl(tr.ctx, "delete", "-f", file) // they apply to the trial's namespace only
	}
	if tr.changedCRD {
		_ = tr.cluster.install(tr.ctx) // the row has done so, unless it failed
	}
	// The cluster is deleted with the run, so a leftover namespace does no harm.
	_ = tr.cluster.kube.CoreV1().Namespaces().Delete(tr.ctx, tr.ns, metav1.DeleteOptions{})
}

// errNotReached says that a run made fewer writes than the one without faults, so that
// there was nothing to break.
var errNotReached = errors.New("the write that was to fail was not made")

// run acts, and then asks the oracle. It returns the first failure, and the false statuses.
func (tr *trial) run(acts func(*trial)) error {
	var acting sync.WaitGroup
	acting.Go(func() { // must ends its goroutine
		acts(tr)
		tr.stableAndQuiet()
	})
	acting.Wait()
	tr.endRecording()
	found := errors.Join(tr.falsehoods...)
	if found != nil && errors.Is(*tr.outcome, errNotReached) {
		return found
	}
	return errors.Join(*tr.outcome, found)
}

// must ends the trial if err is not nil, as T.Fatal ends a test: only the goroutine of run
// may call it, or another method that can fail.
func (tr *trial) must(err error) {
	if err == nil {
		return
	}
	if tr.phase != "" {
		err = fmt.Errorf("%s: %w", tr.phase, err)
	}
	*tr.outcome = err
	runtime.Goexit()
}

func (tr *trial) failf(format string, args ...any) { tr.must(fmt.Errorf(format, args...)) }

// start starts a controller with more flags.
func (tr *trial) start(flags ...string) *replica {
	r := tr.prepare(flags...)
	tr.must(r.start())
	return r
}

// startWithFoo starts a controller, and creates Foo a and waits until it is as it should be.
func (tr *trial) startWithFoo(deployment string, replicas int32) *replica {
	r := tr.start()
	tr.settledFoo("a", deployment, replicas)
	return r
}

// prepare prepares a controller without starting it.
func (tr *trial) prepare(flags ...string) *replica {
	confine, args := tr.ns, tr.subject.flags
	switch {
	case tr.everywhere:
		confine = ""
	case !tr.subject.isUpstream:
		confine, args = "", append(slices.Clip(args), "-namespace="+tr.ns)
	}
	p, err := proxy.New(tr.account, confine, tr.http2)
	tr.must(err)
	r := &replica{proxy: p, kubeconfig: filepath.Join(tr.folder, fmt.Sprintf("kubeconfig-%d", len(tr.replicas)))}
	args = slices.Concat(args, []string{"-kubeconfig=" + r.kubeconfig}, flags)
	r.program = &program{command: func() *exec.Cmd {
		command := exec.Command(tr.subject.path, args...)
		command.Env = slices.Concat(os.Environ(), []string{"KUBE_CACHE_MUTATION_DETECTOR=true"}, r.env)
		return command
	}}
	tr.replicas = append(tr.replicas, r)
	tr.must(r.writeKubeconfig(clientcmdapi.AuthInfo{}))
	return r
}

// writeKubeconfig writes a kubeconfig for the connection through the proxy.
func (r *replica) writeKubeconfig(user clientcmdapi.AuthInfo) error {
	return testcluster.WriteKubeconfig(r.kubeconfig, r.proxy.URL, r.proxy.Certificate(), user)
}

// flagsOfOurs returns flags that only our controller has.
func (tr *trial) flagsOfOurs(flags ...string) []string {
	if tr.subject.isUpstream {
		return nil
	}
	return flags
}

// resyncFlags returns the flags for a controller that resyncs, and a time in which it
// does so at least twice.
func (tr *trial) resyncFlags() (flags []string, howLong time.Duration) {
	if tr.subject.isUpstream {
		return nil, 65 * time.Second
	}
	return []string{"-resync=1s"}, 5 * time.Second
}

// diagnostics returns the controllers' requests and the end of their logs. Of older
// requests it has only watches and those with a fault.
func (tr *trial) diagnostics() string {
	const recent = 60
	var text strings.Builder
	for i, r := range tr.replicas {
		calls := r.proxy.Calls()
		fmt.Fprintf(&text, "Requests of controller %d, %d in all:\n", i+1, len(calls))
		for n, call := range calls {
			if n >= len(calls)-recent || call.IsWatch() || call.Fault != "" {
				fmt.Fprintf(&text, "  %s\n", call.String())
			}
		}
		fmt.Fprintf(&text, "The end of its log:\n%s\n", strings.Join(testcluster.LastLines(r.log.String(), 40), "\n"))
	}
	return text.String()
}

// errNotRolledOut says that a Deployment is as requested, but the cluster has not created
// all its Pods yet.
var errNotRolledOut = errors.New("not rolled out")

// wait calls check until it returns nil. If only the rollout by the cluster takes long,
// as on a busy machine, it waits rolloutTimeout longer, because the controller is not at
// fault.
func (tr *trial) wait(what string, check func(context.Context) error) error {
	err := testcluster.Await(tr.ctx, tr.timeout, what, check)
	if tr.ctx.Err() == nil && errors.Is(err, errNotRolledOut) {
		err = testcluster.Await(tr.ctx, rolloutTimeout, what, check)
	}
	return err
}

func (tr *trial) await(what string, check func(context.Context) error) { tr.must(tr.wait(what, check)) }

// pause gives a controller time to do what it must not do. Use await for what it must do.
func (tr *trial) pause(howLong time.Duration) { tr.must(sleep(tr.ctx, howLong)) }

func sleep(ctx context.Context, howLong time.Duration) error {
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAwaitExtendsItsTimeoutForRolloutsOnly(t *testing.T) {
	for _, known := range []error{errors.New("it has 1 replica"), fmt.Errorf("Foo a: %w", errNotRolledOut)} {
		tr := &trial{ctx: t.Context(), timeout: 100 * time.Millisecond}
		began := time.Now()
		err := tr.wait("there is no error", func(context.Context) error {
			if time.Since(began) < 3*tr.timeout {
				return known
			}
			return nil
		})
		if waited := err == nil; waited != errors.Is(known, errNotRolledOut) {
			t.Errorf("with the error %q, wait returns %v", known, err)
		}
	}
}
