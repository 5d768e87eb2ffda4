// SPDX-License-Identifier: Apache-2.0

// Programs that are killed and restarted: the controllers under test, and the components of
// a control plane.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// stopTime bounds how long a controller may take to stop. Ours gives syncs in progress 20
// seconds.
const stopTime = 40 * time.Second

// program is a program that can be killed and started again.
type program struct {
	command func() *exec.Cmd
	log     testcluster.Log
	mu      sync.Mutex
	process *testcluster.Process
	ended   bool // for good
}

// start starts the program, unless the trial is over.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	command := p.command()
	command.Stdout, command.Stderr = &p.log, &p.log
	process, err := testcluster.StartProcess(command)
	if err == nil {
		p.process = process
	}
	return err
}

func (p *program) current() *testcluster.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// signal sends a signal to the program.
func (p *program) signal(s syscall.Signal) {
	if process := p.current(); process != nil {
		_ = process.Signal(s)
	}
}

// kill ends the program with SIGKILL, and returns when it has ended.
func (p *program) kill() {
	if process := p.current(); process != nil {
		process.Kill()
	}
}

// crash kills the program and starts it again.
func (p *program) crash() {
	p.kill()
	_ = p.start() // the trial fails if it does not run
}

// close kills the program for good.
func (p *program) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.kill()
}

// replica is a controller and its way to the API server.
type replica struct {
	*program
	proxy      *proxy.Proxy
	kubeconfig string
	// env is added to the environment.
	env []string
}

// start starts a controller with more flags.
func (tr *trial) start(flags ...string) *replica {
	tr.t.Helper()
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
	tr.t.Helper()
	confine, args := tr.ns, tr.subject.flags
	switch {
	case tr.everywhere:
		confine = ""
	case !tr.subject.isUpstream:
		confine, args = "", append(slices.Clip(args), "-namespace="+tr.ns)
	}
	p, err := proxy.New(tr.account.Config, confine, tr.http2)
	tr.must(err)
	r := &replica{proxy: p, kubeconfig: filepath.Join(tr.t.TempDir(), "kubeconfig")}
	args = slices.Concat(args, []string{"-kubeconfig=" + r.kubeconfig}, flags)
	r.program = &program{command: func() *exec.Cmd {
		command := exec.CommandContext(run.ctx, tr.subject.path, args...)
		// With the detector a controller panics if it changes an object of its caches.
		command.Env = slices.Concat(os.Environ(), []string{"KUBE_CACHE_MUTATION_DETECTOR=true"}, r.env)
		return command
	}}
	tr.replicas = append(tr.replicas, r)
	tr.t.Cleanup(func() {
		r.close()
		r.proxy.Close()
		if tr.outcome == nil && tr.t.Failed() {
			tr.t.Log(r.diagnostics())
		}
	})
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

// awaitLog waits until the log of a controller contains a text a number of times.
func (tr *trial) awaitLog(r *replica, text string, times int) {
	tr.t.Helper()
	ctx, cancel := context.WithTimeoutCause(tr.ctx, tr.timeout, errors.New("timeout"))
	defer cancel()
	tr.must(r.log.Await(ctx, r.current(), text, times))
}

// stop sends SIGTERM, and fails unless the controller exits in time with code 0.
func (tr *trial) stop(r *replica) {
	tr.t.Helper()
	r.signal(syscall.SIGTERM)
	tr.mustExit(r, "after SIGTERM", 0)
}

// mustRun fails if a controller has ended.
func (tr *trial) mustRun(r *replica) {
	if r.current().HasEnded() {
		tr.failf("the process has ended")
	}
}

// mustExit fails unless a controller ends by itself, in time, with an exit code.
func (tr *trial) mustExit(r *replica, when string, want int) {
	process := r.current()
	if !process.Wait(stopTime) {
		tr.failf("%s it did not exit within %v", when, stopTime)
	}
	if code := process.State().ExitCode(); code != want {
		tr.failf("%s it exited with code %d", when, code)
	}
}

// diagnostics returns a controller's requests and the end of its log. Of older
// requests it has only watches and those with a fault.
func (r *replica) diagnostics() string {
	const recent = 60
	var text strings.Builder
	calls := r.proxy.Calls()
	fmt.Fprintf(&text, "Requests of a controller, %d in all:\n", len(calls))
	for n, call := range calls {
		if n >= len(calls)-recent || call.IsWatch() || call.Fault != "" {
			fmt.Fprintf(&text, "  %s\n", call.String())
		}
	}
	fmt.Fprintf(&text, "The end of its log:\n%s\n", strings.Join(testcluster.LastLines(r.log.String(), 40), "\n"))
	return text.String()
}

// controlPlane is a control plane of one test, whose components can be killed and restarted.
type controlPlane struct {
	*testcluster.ControlPlane
	*testCluster
}

// newControlPlane starts a control plane for one test.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	plane, err := testcluster.StartControlPlane(t.Context(), os.Getenv("DEVCLUSTER_BIN"), t.TempDir(), nil, "-nodes=2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plane.Kill(testcluster.AllComponents()...) })
	p := &controlPlane{ControlPlane: plane, testCluster: &testCluster{kubeconfig: plane.Kubeconfig}}
	for _, step := range []func() error{
		p.connect, func() error { return p.install(t.Context()) }, func() error { return p.awaitInForce(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// restart kills components, does something, and starts them again, between two recordings.
func (tr *trial) restart(meanwhile func(), names ...string) {
	tr.withoutRecording(func() {
		tr.plane.Kill(names...)
		meanwhile()
		tr.must(tr.plane.Start(tr.ctx, names...))
	})
}
