// SPDX-License-Identifier: Apache-2.0

// The controllers under test, their processes, and a relay for their connections.

package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/sample-controller/test/testcluster"
)

// stopTime bounds how long a controller may take to stop. Ours gives syncs under way 20
// seconds.
const stopTime = 40 * time.Second

// process is a controller that can be killed and restarted.
type process struct {
	path  string
	args  []string
	env   []string // in addition to the test's
	log   testcluster.Log
	mu    sync.Mutex
	run   *testcluster.Process
	ended bool // for good
}

var errEnded = errors.New("the trial is over")

// start starts the program, unless the trial is over.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errEnded
	}
	command := exec.Command(p.path, p.args...)
	command.Env = append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true"), p.env...)
	command.Stdout, command.Stderr = &p.log, &p.log
	run, err := testcluster.StartProcess(command)
	if err == nil {
		p.run = run
	}
	return err
}

func (p *process) current() *testcluster.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// signal sends a signal to the program.
func (p *process) signal(s syscall.Signal) {
	if run := p.current(); run != nil {
		_ = run.Signal(s)
	}
}

// kill ends the program with SIGKILL, and returns when it has ended.
func (p *process) kill() {
	if run := p.current(); run != nil {
		run.Kill()
	}
}

// crash kills the program and starts it again.
func (p *process) crash() {
	p.kill()
	_ = p.start() // refused only at the end of the trial
}

// close kills the program for good.
func (p *process) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.kill()
}

// exitCode waits until the program ends by itself and returns its exit code, or -1 if it
// does not end in time.
func (p *process) exitCode() int {
	run := p.current()
	if !run.Wait(stopTime) {
		return -1
	}
	return run.State().ExitCode()
}

func (p *process) hasEnded() bool { return p.current().HasEnded() }

// subject is a controller under test: any program that takes -kubeconfig.
type subject struct {
	name string
	path string
	// version is the version of upstream's module.
	version string
	// flags are passed in addition to -kubeconfig.
	flags []string
	// namespaced programs take -namespace. The proxy confines the others to a namespace.
	namespaced bool
	// conditions is true if the program reports conditions and observedGeneration, which
	// the oracle then checks.
	conditions bool
	// resyncs is true if the program writes a status and an Event for each Foo at each
	// resync, by design. One row checks for that; the others ignore it, so that each row
	// finds a problem of its own.
	resyncs bool
}

const moduleRoot = "../.."

// buildOurs builds the controller from a copy of this repository's root module. It runs
// without resyncs, so that they repair nothing.
func buildOurs(ctx context.Context, output string, flags ...string) (*subject, error) {
	if err := testcluster.Build(ctx, moduleRoot, output, ".", flags...); err != nil {
		return nil, err
	}
	return &subject{
		name: "ours", path: output, flags: []string{"-resync=0", "-v=2"},
		namespaced: true, conditions: true,
	}, nil
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
	return &subject{name: "upstream", path: output, version: strings.TrimSpace(string(version)), resyncs: true}, nil
}

// relay passes bytes to an API server and back. It can make the open connections go dead:
// what is sent over them is lost, and neither side is notified. New connections work.
type relay struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	open     []*connection
}

type connection struct {
	client, server net.Conn
	silent         chan struct{}
}

func newRelay(ctx context.Context, target string) (*relay, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, target: target}
	go r.accept()
	return r, nil
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // it is closed
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		one := &connection{client, server, make(chan struct{})}
		r.mu.Lock()
		r.open = append(r.open, one)
		r.mu.Unlock()
		go one.pass(client, server)
		go one.pass(server, client)
	}
}

// pass copies until one side ends. After the connection has gone dead, it discards what
// it reads.
func (c *connection) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.silent:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// silence makes all open connections go dead.
func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.open {
		close(one.silent)
	}
	r.open = nil
}

func (r *relay) close() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.open {
		one.client.Close()
		one.server.Close()
	}
}
