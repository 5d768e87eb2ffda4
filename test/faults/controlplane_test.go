// SPDX-License-Identifier: Apache-2.0

// A control plane whose components a test can kill, freeze and restart.

package faults

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/testcluster"
)

// The components of a control plane, in the order in which they are started.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	nodes             = "kwok"
)

func allComponents() []string { return []string{etcd, apiServer, controllerManager, scheduler, nodes} }

// controlPlane is a control plane whose components can be killed and restarted. The
// devcluster stops all components when one ends, so it only supplies the command lines.
type controlPlane struct {
	*testCluster
	data       string
	components map[string]*component
	// lifeline ends the components when this process ends, in whatever way.
	lifelineRead, lifelineWrite *os.File
}

// component is a component of the control plane, running or not.
type component struct {
	args    []string
	mu      sync.Mutex
	process *testcluster.Program
}

func (p *component) current() *testcluster.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// newControlPlane starts a control plane for one test.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	p := &controlPlane{data: filepath.Join(t.TempDir(), "data"), components: map[string]*component{}}
	if err := p.readCommandLines(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.lifelineRead, p.lifelineWrite, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	if err := p.connect(); err != nil {
		t.Fatal(err)
	}
	if err := p.start(t.Context(), allComponents()...); err != nil {
		t.Fatal(err)
	}
	if p.testCluster, err = prepare(t.Context(), p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// readCommandLines makes the devcluster create its files, and reads the components'
// command lines from its output.
func (p *controlPlane) readCommandLines(ctx context.Context) error {
	c, err := testcluster.StartCluster(ctx, os.Getenv("DEVCLUSTER_BIN"), p.data, "-v", "-keep", "-nodes=2")
	if err != nil {
		return err
	}
	if err := c.Stop(); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log)
	}
	p.testCluster = &testCluster{kubeconfig: c.Kubeconfig}
	return p.parse(c.Log.String())
}

// parse reads the output of devcluster -v: the name of a component, then one argument per
// line.
func (p *controlPlane) parse(output string) error {
	var current *component
	for line := range strings.Lines(output) {
		line, _ = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ` \`)
		if argument, ok := strings.CutPrefix(line, "    "); ok && current != nil {
			current.args = append(current.args, argument)
			continue
		}
		current = nil
		if slices.Contains(allComponents(), line) {
			current = &component{args: []string{line}}
			p.components[line] = current
		}
	}
	for _, name := range allComponents() {
		if p.components[name] == nil {
			return fmt.Errorf("devcluster -v does not print the command line of %s:\n%s", name, output)
		}
	}
	p.components[etcd].args = append(p.components[etcd].args, "--unsafe-no-fsync=true")
	return nil
}

// start starts components. If the API server is one of them, it waits until the API
// server is ready.
func (p *controlPlane) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := p.launch(name); err != nil {
			return err
		}
		if name != apiServer {
			continue
		}
		if err := p.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *controlPlane) launch(name string) error {
	one := p.components[name]
	command := exec.Command(os.Getenv("DEVCLUSTER_BIN"), one.args...)
	command.ExtraFiles = []*os.File{p.lifelineRead} // descriptor 3
	command.Env = append(os.Environ(), "DEVCLUSTER_LIFELINE_FD=3", "NO_PROXY=*", "no_proxy=*", "KUBECONFIG=",
		"KWOK_WORKDIR="+filepath.Join(p.data, "config"))
	process, err := testcluster.StartProgram(name, filepath.Join(p.data, "logs", name+".log"), command)
	if err != nil {
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.process = process
	return nil
}

// awaitReady waits until the API server is ready, and deletes the Leases of the other
// components, so that they need not wait for those to expire.
func (p *controlPlane) awaitReady(ctx context.Context) error {
	tr := &trial{timeout: waitTimeout}
	err := tr.await(ctx, "the API server is ready", func(ctx context.Context) error {
		return p.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return errors.Join(err, p.deleteLeases(ctx))
}

func (p *controlPlane) deleteLeases(ctx context.Context) error {
	var errs []error
	for _, name := range []string{controllerManager, scheduler} {
		err := p.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// signal sends a signal to a component.
func (p *controlPlane) signal(name string, s syscall.Signal) {
	if process := p.components[name].current(); process != nil {
		_ = process.Signal(s)
	}
}

// kill kills components, and returns when they have ended.
func (p *controlPlane) kill(names ...string) {
	for _, name := range names {
		if process := p.components[name].current(); process != nil {
			process.Kill()
		}
	}
}

func (p *controlPlane) close() {
	components := allComponents()
	slices.Reverse(components)
	p.kill(components...)
	_ = p.lifelineRead.Close()
	_ = p.lifelineWrite.Close()
}
