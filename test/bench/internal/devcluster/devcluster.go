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

// Package devcluster starts a control plane for one measurement, with an account
// for the program that is measured.
package devcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/calls"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	// ready is what the command in the cluster says once it is up. It then lasts
	// as long as its standard input: if the benchmark dies, so does the cluster.
	ready   = "ready"
	command = "echo " + ready + "; exec cat"
)

// Options say which cluster to start.
type Options struct {
	// Program is the path of devcluster's binary, Repository that of this repository.
	Program, Repository string
	// Whole starts kube-controller-manager, kube-scheduler and KWOK, too.
	Whole bool
	// Namespaces are made.
	Namespaces []string
}

// Cluster is a control plane that runs.
type Cluster struct {
	// Dir is the folder of its data, which Stop removes.
	Dir string
	// Kube, Foos and Metadata are the benchmark's own clients: the administrator's,
	// without limits.
	Kube     kubernetes.Interface
	Foos     clientset.Interface
	Metadata metadata.Interface
	// Contender is the configuration of the account that is measured, and
	// ContenderKubeconfig the path of its file.
	Contender           *rest.Config
	ContenderKubeconfig string

	process *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
}

// Start starts a cluster with the definition of Foo installed, and with the
// account of the program to be measured.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "foo-bench-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, ended: make(chan struct{})}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster in %s: %w", dir, err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	// With -v it says how to reach etcd.
	args := []string{"run", "-v", "-data-dir", c.data()}
	if !options.Whole {
		args = append(args, "-without=kube-controller-manager,kube-scheduler,kwok")
	}
	if err := c.launch(ctx, exec.Command(options.Program, append(args, "--", "sh", "-c", command)...)); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.data(), "kubeconfig"))
	if err != nil {
		return err
	}
	config.QPS = -1
	config.UserAgent = "foo-bench"
	var errs [3]error
	c.Kube, errs[0] = kubernetes.NewForConfig(Protobuf(config))
	c.Foos, errs[1] = clientset.NewForConfig(config)
	c.Metadata, errs[2] = metadata.NewForConfig(metadata.ConfigFor(config))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return errors.Join(
		c.installFoo(ctx, options),
		c.makeAccount(ctx, config),
		calls.CountFlows(ctx, c.Kube, accountNamespace, accountName),
		c.makeNamespaces(ctx, options.Namespaces))
}

// launch starts devcluster and returns when its cluster is up.
func (c *Cluster) launch(ctx context.Context, process *exec.Cmd) error {
	log, err := os.Create(c.log())
	if err != nil {
		return err
	}
	defer log.Close()
	process.Stderr = log
	stdin, err := process.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	c.process, c.stdin = process, stdin
	up := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		up <- lines.Scan() && lines.Text() == ready
		for lines.Scan() { // until it ends
		}
		_ = process.Wait() // its log tells
		close(c.ended)
	}()
	select {
	case ok := <-up:
		if ok {
			return nil
		}
		<-c.ended
		content, _ := os.ReadFile(log.Name())
		return fmt.Errorf("devcluster ended (%v):\n%s", process.ProcessState, content)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the cluster and removes its data.
func (c *Cluster) Stop() error {
	if c.process != nil {
		_ = c.stdin.Close()
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-c.ended:
		case <-timer.C:
			_ = c.process.Process.Kill() // what it supervises ends with it
			<-c.ended
		}
	}
	return os.RemoveAll(c.Dir)
}

// Running returns an error if the cluster has ended by itself.
func (c *Cluster) Running() error {
	select {
	case <-c.ended:
		return errors.New("the cluster ended by itself: see the logs that devcluster left")
	default:
		return nil
	}
}

// AuditLog is the path of the API server's.
func (c *Cluster) AuditLog() string { return filepath.Join(c.data(), "audit.log") }

// Log is the path of a file for what a program prints.
func (c *Cluster) Log(program string) string { return c.path(program + ".log") }

func (c *Cluster) data() string { return c.path("data") }

func (c *Cluster) log() string { return c.path("devcluster.log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }
