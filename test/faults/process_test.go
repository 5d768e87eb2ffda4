// SPDX-License-Identifier: Apache-2.0

// Programs that are killed and restarted: the controllers under test, and the components of
// a control plane.

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
	"time"

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

// subject is a controller under test: any program that takes -kubeconfig.
type subject struct {
	name string
	path string
	// version is the version of upstream's module.
	version string
	// flags are passed in addition to -kubeconfig.
	flags []string
	// isUpstream is true for upstream's controller. It takes no -namespace, so the proxy confines
	// it to one. It has no conditions and no observedGeneration, which the oracle checks of ours.
	// At each resync it writes a status and an Event for each Foo, by design: one row checks for
	// that, and the others ignore it, so that each finds its own problem.
	isUpstream bool
	// writes is how many writes each workload makes without a fault: 0 if it fails. One that
	// was not run, because of -run, is missing.
	writes map[string]int
}

// can reports whether the controller passes a workload without a fault, and makes as many
// writes then.
func (s *subject) can(workload string, writes int) bool {
	run.mu.Lock()
	defer run.mu.Unlock()
	found, known := s.writes[workload]
	return !known || found >= max(writes, 1)
}

func (s *subject) setWrites(workload string, writes int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	s.writes[workload] = writes
}

const moduleRoot = "../.."

// buildOurs builds the controller from a copy of this repository's root module. It runs
// without resyncs, so that they repair nothing.
func buildOurs(ctx context.Context, output string, flags ...string) (*subject, error) {
	if err := testcluster.Build(ctx, moduleRoot, output, ".", flags...); err != nil {
		return nil, err
	}
	return &subject{name: "ours", path: output, flags: []string{"-resync=0", "-v=2"}, writes: map[string]int{}}, nil
}

// buildUpstream builds kubernetes/sample-controller in the version that test/thirdparty
// requires. Its resync of 30 s can't be turned off.
func buildUpstream(ctx context.Context, folder string) (*subject, error) {
	const module = "k8s.io/sample-controller"
	source, output := filepath.Join(moduleRoot, "test/thirdparty"), filepath.Join(folder, "upstream")
	if err := testcluster.Build(ctx, source, output, module); err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	list.Dir = source
	version, err := list.Output()
	if err != nil {
		return nil, err
	}
	return &subject{
		name: "upstream", path: output, version: strings.TrimSpace(string(version)),
		isUpstream: true, writes: map[string]int{"adopt": 0},
	}, nil
}

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
	components map[string]*program
}

// newControlPlane starts a control plane for one test.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	p := &controlPlane{data: filepath.Join(t.TempDir(), "data"), components: map[string]*program{}}
	components := allComponents()
	slices.Reverse(components)
	t.Cleanup(func() { p.kill(components...) })
	if err := p.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// begin makes the devcluster create its files, reads the components' command lines from its
// output, and starts them.
func (p *controlPlane) begin(ctx context.Context) error {
	c, err := testcluster.StartCluster(ctx, os.Getenv("DEVCLUSTER_BIN"), p.data, "-v", "-keep", "-nodes=2")
	if err != nil {
		return err
	}
	if err := c.Stop(); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log)
	}
	p.testCluster = &testCluster{kubeconfig: c.Kubeconfig}
	if err := errors.Join(p.parse(c.Log.String()), p.connect()); err != nil {
		return err
	}
	if err := p.start(ctx, allComponents()...); err != nil {
		return err
	}
	p.testCluster, err = prepare(ctx, c.Kubeconfig)
	return err
}

// parse reads the output of devcluster -v: the name of a component, then one argument per
// line.
func (p *controlPlane) parse(output string) error {
	arguments, current := map[string][]string{}, ""
	for line := range strings.Lines(output) {
		line, _ = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ` \`)
		if argument, ok := strings.CutPrefix(line, "    "); !ok {
			current, arguments[line] = line, nil
		} else if current != "" {
			arguments[current] = append(arguments[current], argument)
		}
	}
	for _, name := range allComponents() {
		if len(arguments[name]) == 0 {
			return fmt.Errorf("devcluster -v does not print the command line of %s:\n%s", name, output)
		}
		p.components[name] = &program{command: func() *exec.Cmd {
			command := exec.Command(os.Getenv("DEVCLUSTER_BIN"), append([]string{name}, arguments[name]...)...)
			_, _ = command.StdinPipe() // ends with this process, in whatever way, and the component then
			command.Env = append(os.Environ(), "DEVCLUSTER_LIFELINE_FD=0", "NO_PROXY=*", "no_proxy=*", "KUBECONFIG=",
				"KWOK_WORKDIR="+filepath.Join(p.data, "config"))
			return command
		}}
	}
	arguments[etcd] = append(arguments[etcd], "--unsafe-no-fsync=true")
	for _, name := range []string{controllerManager, scheduler} { // which must not wait for a Lease to expire
		arguments[name] = append(arguments[name], "--leader-elect=false")
	}
	return nil
}

// start starts components. If the API server is one of them, it waits until the API
// server is ready.
func (p *controlPlane) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := p.components[name].start(); err != nil {
			return err
		}
		if name == apiServer {
			if err := p.awaitReady(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitReady waits until the API server is ready.
func (p *controlPlane) awaitReady(ctx context.Context) error {
	return testcluster.Await(ctx, waitTimeout, "the API server is ready", func(ctx context.Context) error {
		return p.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// kill kills components, and returns when they have ended.
func (p *controlPlane) kill(names ...string) {
	for _, name := range names {
		if component := p.components[name]; component != nil { // the start may have failed
			component.kill()
		}
	}
}

// restart kills components, does something, and starts them again, between two recordings.
func (tr *trial) restart(meanwhile func(), names ...string) {
	tr.withoutRecording(func() {
		stopped := slices.Clone(names)
		slices.Reverse(stopped)
		tr.plane.kill(stopped...)
		meanwhile()
		tr.must(tr.plane.start(tr.ctx, names...))
	})
}
