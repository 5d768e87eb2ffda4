// SPDX-License-Identifier: Apache-2.0

// The control plane: components that can be killed, frozen and started again.

package testcluster

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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The components, in the order in which they are started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	nodes             = "kwok"
)

// AllComponents returns them in the order in which they are started.
func AllComponents() []string { return []string{Etcd, APIServer, ControllerManager, scheduler, nodes} }

// ControlPlane is a control plane whose components can be killed and started again. The devcluster
// stops all components when one ends, so it only supplies the command lines.
type ControlPlane struct {
	// Data is the directory of its data, and Kubeconfig the path of the administrator's kubeconfig.
	Data, Kubeconfig string
	// Config is the administrator's.
	Config *rest.Config
	Kube   *kubernetes.Clientset

	program   string
	arguments map[string][]string
	processes map[string]*Process
}

// StartControlPlane starts a control plane by devcluster, whose path is program, with its files in a folder.
// controllers are further arguments for kube-controller-manager, and flags for devcluster.
func StartControlPlane(ctx context.Context, program, folder string, controllers []string, flags ...string) (*ControlPlane, error) {
	p := &ControlPlane{
		program: program, Data: filepath.Join(folder, "data"),
		arguments: map[string][]string{}, processes: map[string]*Process{},
	}
	c, err := StartCluster(ctx, program, p.Data, append([]string{"-v", "-keep"}, flags...)...)
	if err != nil {
		return nil, err
	}
	if err := c.Stop(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.Log)
	}
	if err := p.parse(c.Log.String()); err != nil {
		return nil, err
	}
	p.arguments[Etcd] = append(p.arguments[Etcd], "--unsafe-no-fsync=true")
	p.arguments[ControllerManager] = append(p.arguments[ControllerManager], controllers...)
	for _, name := range []string{ControllerManager, scheduler} { // which must not wait for a Lease to expire
		p.arguments[name] = append(p.arguments[name], "--leader-elect=false")
	}
	p.Kubeconfig = c.Kubeconfig
	if p.Config, err = LoadConfig(c.Kubeconfig); err != nil {
		return nil, err
	}
	if p.Kube, err = kubernetes.NewForConfig(p.Config); err != nil {
		return nil, err
	}
	if err := p.Start(ctx, AllComponents()...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// parse reads the output of devcluster -v: the name of a component, then one argument per
// line.
func (p *ControlPlane) parse(output string) error {
	current := ""
	for line := range strings.Lines(output) {
		line, _ = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ` \`)
		if argument, ok := strings.CutPrefix(line, "    "); !ok {
			current = line
		} else if current != "" {
			p.arguments[current] = append(p.arguments[current], argument)
		}
	}
	for _, name := range AllComponents() {
		if len(p.arguments[name]) == 0 {
			return fmt.Errorf("devcluster -v does not print the command line of %s:\n%s", name, output)
		}
	}
	return nil
}

// Start starts components. After the API server, it waits until the API server is ready.
func (p *ControlPlane) Start(ctx context.Context, names ...string) error {
	for _, name := range names {
		command := exec.Command(p.program, append([]string{name}, p.arguments[name]...)...)
		if _, err := command.StdinPipe(); err != nil { // ends with this process, and the component then
			return err
		}
		command.Env = append(os.Environ(), "DEVCLUSTER_LIFELINE_FD=0", "NO_PROXY=*", "no_proxy=*", "KUBECONFIG=",
			"KWOK_WORKDIR="+filepath.Join(p.Data, "config"))
		log, err := os.OpenFile(filepath.Join(p.Data, "logs", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		command.Stdout, command.Stderr = log, io.Writer(log)
		process, err := StartProcess(command)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		p.processes[name] = process
		if name == APIServer {
			if err := p.AwaitReady(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// AwaitReady waits until the API server is ready.
func (p *ControlPlane) AwaitReady(ctx context.Context) error {
	return Await(ctx, startLimit, "the API server is ready", func(ctx context.Context) error {
		return p.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// Kill kills components in the reverse order, and returns when they have ended.
func (p *ControlPlane) Kill(names ...string) {
	for _, name := range slices.Backward(names) {
		if process := p.processes[name]; process != nil {
			process.Kill()
		}
	}
}

// Process returns a component that was started.
func (p *ControlPlane) Process(name string) *Process { return p.processes[name] }

// Close ends the control plane and removes its files.
func (p *ControlPlane) Close() error {
	p.Kill(AllComponents()...)
	return os.RemoveAll(p.Data)
}

// Kubectl runs kubectl as the administrator.
func (p *ControlPlane) Kubectl(ctx context.Context, args ...string) error {
	_, err := Kubectl(ctx, p.program, p.Kubeconfig, args...)
	return err
}
