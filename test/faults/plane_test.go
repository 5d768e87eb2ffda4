/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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

	"example.com/sample-controller/internal/testcluster"
)

// The parts of a control plane, in the order in which they are started.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	nodes             = "kwok"
)

func allParts() []string { return []string{etcd, apiServer, controllerManager, scheduler, nodes} }

// plane is a control plane whose parts can be killed and started again. The
// devcluster ends all when one ends, so it is asked for the command lines only.
type plane struct {
	*testCluster
	data  string
	parts map[string]*part
	// lifeline ends the parts with this process, however it ends.
	lifelineRead, lifelineWrite *os.File
}

// part is a component, which runs or does not.
type part struct {
	args    []string
	mu      sync.Mutex
	process *testcluster.Program
}

func (p *part) current() *testcluster.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// newPlane starts a control plane of the test's own.
func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{data: filepath.Join(t.TempDir(), "data"), parts: map[string]*part{}}
	if err := p.learn(t.Context()); err != nil {
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
	if err := p.start(t.Context(), allParts()...); err != nil {
		t.Fatal(err)
	}
	if p.testCluster, err = prepare(t.Context(), p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// learn has the devcluster make its files, and reads the command lines.
func (p *plane) learn(ctx context.Context) error {
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

// parse reads what devcluster -v prints: a component's name, then an argument a line.
func (p *plane) parse(told string) error {
	var current *part
	for line := range strings.Lines(told) {
		line, _ = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ` \`)
		if argument, ok := strings.CutPrefix(line, "    "); ok && current != nil {
			current.args = append(current.args, argument)
			continue
		}
		current = nil
		if slices.Contains(allParts(), line) {
			current = &part{args: []string{line}}
			p.parts[line] = current
		}
	}
	for _, name := range allParts() {
		if p.parts[name] == nil {
			return fmt.Errorf("devcluster -v does not tell the command line of %s:\n%s", name, told)
		}
	}
	p.parts[etcd].args = append(p.parts[etcd].args, "--unsafe-no-fsync=true")
	return nil
}

// start starts parts, and waits until the API server serves if it is among them.
func (p *plane) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := p.launch(name); err != nil {
			return err
		}
		if name != apiServer {
			continue
		}
		if err := p.awaitServed(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) launch(name string) error {
	one := p.parts[name]
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

// awaitServed waits until the API server is ready, and removes the Leases of
// those who are to be started, so that they need not wait for them.
func (p *plane) awaitServed(ctx context.Context) error {
	tr := &trial{patience: patience}
	err := tr.await(ctx, "the API server is ready", func(ctx context.Context) error {
		return p.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return errors.Join(err, p.forgetLeases(ctx))
}

func (p *plane) forgetLeases(ctx context.Context) error {
	var errs []error
	for _, name := range []string{controllerManager, scheduler} {
		err := p.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// signal sends a signal to a part.
func (p *plane) signal(name string, s syscall.Signal) {
	if process := p.parts[name].current(); process != nil {
		_ = process.Signal(s)
	}
}

// kill kills parts, and returns when they are gone.
func (p *plane) kill(names ...string) {
	for _, name := range names {
		if process := p.parts[name].current(); process != nil {
			process.Kill()
		}
	}
}

func (p *plane) close() {
	parts := allParts()
	slices.Reverse(parts)
	p.kill(parts...)
	_ = p.lifelineRead.Close()
	_ = p.lifelineWrite.Close()
}
