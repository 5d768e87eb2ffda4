// SPDX-License-Identifier: Apache-2.0

// The control plane: components that can be killed, frozen and started again.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/testcluster"
)

// The components, in the order in which they are started.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	nodes             = "kwok"
)

func allComponents() []string { return []string{etcd, apiServer, controllerManager, scheduler, nodes} }

// readyTimeout bounds the start of a control plane.
const readyTimeout = 2 * time.Minute

// plane is a control plane. The devcluster stops all components when one ends, so it only
// supplies the command lines.
type plane struct {
	program, data, kubeconfig string
	arguments                 map[string][]string
	processes                 map[string]*testcluster.Process
	// config is the administrator's.
	config *rest.Config
	kube   *kubernetes.Clientset
}

// startPlane starts a control plane with its files in a folder. controllers are further
// arguments for kube-controller-manager.
func startPlane(ctx context.Context, program, folder string, controllers []string) (*plane, error) {
	p := &plane{
		program: program, data: filepath.Join(folder, "data"),
		arguments: map[string][]string{}, processes: map[string]*testcluster.Process{},
	}
	c, err := testcluster.StartCluster(ctx, program, p.data, "-v", "-keep")
	if err != nil {
		return nil, err
	}
	if err := c.Stop(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.Log)
	}
	p.parse(c.Log.String())
	p.arguments[etcd] = append(p.arguments[etcd], "--unsafe-no-fsync=true")
	p.arguments[controllerManager] = append(p.arguments[controllerManager], controllers...)
	for _, name := range []string{controllerManager, scheduler} { // which must not wait for a Lease to expire
		p.arguments[name] = append(p.arguments[name], "--leader-elect=false")
	}
	p.kubeconfig = c.Kubeconfig
	if p.config, err = testcluster.LoadConfig(c.Kubeconfig); err != nil {
		return nil, err
	}
	if p.kube, err = kubernetes.NewForConfig(p.config); err != nil {
		return nil, err
	}
	if err := p.start(ctx, allComponents()...); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// parse reads the output of devcluster -v: the name of a component, then one argument per
// line.
func (p *plane) parse(output string) {
	current := ""
	for line := range strings.Lines(output) {
		line, _ = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ` \`)
		if argument, ok := strings.CutPrefix(line, "    "); !ok {
			current = line
		} else if slices.Contains(allComponents(), current) {
			p.arguments[current] = append(p.arguments[current], argument)
		}
	}
}

// start starts components. After the API server, it waits until the API server is ready.
func (p *plane) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		command := exec.Command(p.program, append([]string{name}, p.arguments[name]...)...)
		if _, err := command.StdinPipe(); err != nil { // ends with this process, and the component then
			return err
		}
		command.Env = append(os.Environ(), "DEVCLUSTER_LIFELINE_FD=0", "NO_PROXY=*", "no_proxy=*", "KUBECONFIG=",
			"KWOK_WORKDIR="+filepath.Join(p.data, "config"))
		log, err := os.OpenFile(filepath.Join(p.data, "logs", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		command.Stdout, command.Stderr = log, io.Writer(log)
		process, err := testcluster.StartProcess(command)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		p.processes[name] = process
		if name == apiServer {
			if err := p.awaitReady(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plane) awaitReady(ctx context.Context) error {
	return testcluster.Await(ctx, readyTimeout, "the API server is ready", func(ctx context.Context) error {
		return p.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// kill kills components in the reverse order, and returns when they have ended.
func (p *plane) kill(names ...string) {
	for _, name := range slices.Backward(names) {
		if process := p.processes[name]; process != nil {
			process.Kill()
		}
	}
}

// close ends the control plane and removes its files.
func (p *plane) close() error {
	p.kill(allComponents()...)
	return os.RemoveAll(p.data)
}

func (p *plane) kubectl(ctx context.Context, args ...string) error {
	_, err := testcluster.Kubectl(ctx, p.program, p.kubeconfig, args...)
	return err
}
