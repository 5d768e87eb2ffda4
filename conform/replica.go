// SPDX-License-Identifier: Apache-2.0

// The program under test: started as a kubelet would, again when it ends.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

const (
	// restartDelay is how long after an end of its own the program is started again.
	restartDelay = time.Second
	// termGrace is how long the program may take to end after SIGTERM, as with a kubelet.
	termGrace = 30 * time.Second
)

// replica is a process of the program, and its way to the API server.
type replica struct {
	proxy   *proxy.Proxy
	command func() *exec.Cmd
	log     testcluster.Log

	mu      sync.Mutex
	process *testcluster.Process
	// started is when the process was started last. asked is true if its end was asked for, and
	// down if it must not be started again.
	started     time.Time
	asked, down bool
	exits       []judge.Exit
	watching    sync.WaitGroup
}

// newReplica prepares a replica for a namespace without starting it.
func (r *runner) newReplica(namespace, folder string, number int, args []string) (*replica, error) {
	p, err := proxy.New(r.account, namespace, true)
	if err != nil {
		return nil, err
	}
	if !r.clusterWide {
		p.Confine(func(call *proxy.Call) bool { return r.recorder.isNamespaced(call.APIGroup, call.Resource) })
	}
	kubeconfig := filepath.Join(folder, fmt.Sprintf("kubeconfig-%d", number))
	if err := writeKubeconfig(kubeconfig, p, namespace); err != nil {
		p.Close()
		return nil, err
	}
	expand := strings.NewReplacer("$(KUBECONFIG)", kubeconfig, "$(NAMESPACE)", namespace, "$(REPLICA)", strconv.Itoa(number)).Replace
	env := append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+namespace)
	for name, value := range r.settings.Env {
		env = append(env, name+"="+expand(value))
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = expand(args[i])
	}
	return &replica{proxy: p, command: func() *exec.Cmd {
		command := exec.Command(args[0], args[1:]...)
		command.Env = env
		// Not in the terminal's group: Ctrl-C is for conform, which ends its programs.
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		return command
	}}, nil
}

// writeKubeconfig writes a kubeconfig that leads through a proxy. A token that the proxy
// replaces is in it, because some clients insist on one.
func writeKubeconfig(path string, p *proxy.Proxy, namespace string) error {
	if err := testcluster.WriteKubeconfig(path, p.URL, p.Certificate(), clientcmdapi.AuthInfo{Token: "conform"}); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.WriteToFile(*config, path)
}

// start starts the process, and again whenever it ends, until it is to be down.
func (p *replica) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	return p.startUnlessDown()
}

// startUnlessDown needs the lock.
func (p *replica) startUnlessDown() error {
	if p.down {
		return nil
	}
	command := p.command()
	command.Stdout, command.Stderr = &p.log, &p.log
	process, err := testcluster.StartProcess(command)
	if err != nil {
		return err
	}
	p.process, p.started, p.asked = process, time.Now(), false
	p.watching.Go(func() {
		<-process.Ended()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.process != process: // another was started
		case p.asked:
			_ = p.startUnlessDown() // the run does not come to its end without it
		default:
			p.exits = append(p.exits, judge.Exit{At: time.Now(), How: process.State().String()})
			time.AfterFunc(restartDelay, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.process == process {
					_ = p.startUnlessDown()
				}
			})
		}
	})
	return nil
}

// signal sends a signal. If it ends the process, down says whether for good.
func (p *replica) signal(s syscall.Signal, down bool) *testcluster.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == syscall.SIGKILL || s == syscall.SIGTERM {
		p.asked, p.down = true, down
	}
	_ = p.process.Signal(s) // it may have ended
	return p.process
}

// kill kills the process, which is started again unless down, and returns when it has ended.
func (p *replica) kill(down bool) { <-p.signal(syscall.SIGKILL, down).Ended() }

// close ends the process and its connection.
func (p *replica) close() {
	if p.process != nil {
		p.kill(true)
	}
	p.watching.Wait()
	p.proxy.Close()
}

// endings returns the ends that nobody asked for, and when the process was started last.
func (p *replica) endings() ([]judge.Exit, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.exits), p.started
}
