// SPDX-License-Identifier: Apache-2.0

// Package devcluster starts a control plane for one measurement, with an account for the
// measured program.
package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testcluster"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/calls"
)

const startTimeout = 2 * time.Minute

// Options describe the cluster to start.
type Options struct {
	// Program is the path of the devcluster binary, Repository that of this repository.
	Program, Repository string
	// Whole also starts kube-controller-manager, kube-scheduler and KWOK.
	Whole bool
	// Namespaces are created.
	Namespaces []string
}

// Cluster is a running control plane.
type Cluster struct {
	// Dir is its data folder, which Stop removes.
	Dir string
	// Kube, Foos and Metadata are the benchmark's own clients, with the administrator's
	// permissions and without rate limits.
	Kube     kubernetes.Interface
	Foos     clientset.Interface
	Metadata metadata.Interface
	// Contender is the client configuration of the measured account, and
	// ContenderKubeconfig the path of its kubeconfig.
	Contender           *rest.Config
	ContenderKubeconfig string

	*testcluster.Cluster
}

// Start starts a cluster with the CRD of Foo and the account of the measured program.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "foo-bench-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster in %s: %w", dir, err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	flags := []string{"-v"} // -v prints the flags to connect to etcd with.
	if !options.Whole {
		flags = append(flags, testcluster.ControlPlaneOnly)
	}
	var err error
	if c.Cluster, err = testcluster.StartCluster(ctx, options.Program, c.path("data"), flags...); err != nil {
		return err
	}
	config, err := testcluster.LoadConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
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
		c.createAccount(ctx),
		calls.CountFlows(ctx, c.Kube, accountNamespace, accountName),
		c.createNamespaces(ctx, options.Namespaces))
}

// Stop stops the cluster and removes its data.
func (c *Cluster) Stop() error {
	if c.Cluster != nil {
		_ = c.Cluster.Stop() // Running reports whether it ended by itself.
	}
	return os.RemoveAll(c.Dir)
}

// Running returns an error if the cluster has ended by itself.
func (c *Cluster) Running() error {
	if c.HasEnded() {
		return errors.New("the cluster ended by itself: see the logs of devcluster")
	}
	return nil
}

// LogOf returns the path of the file for the output of a program.
func (c *Cluster) LogOf(program string) string { return c.path(program + ".log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }
