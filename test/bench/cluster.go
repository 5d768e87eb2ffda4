// SPDX-License-Identifier: Apache-2.0

// The cluster of a measurement, and the objects in it.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/testcluster"
)

const (
	prepareTimeout = 2 * time.Minute

	// account is the namespace and the name of the measured program's service account, which
	// lets the API server tell its requests from all others, and gives them the priority of
	// any workload. accountUser is its user name. manifests/cluster.yaml creates it, and the
	// namespaces.
	account     = "contender"
	accountUser = "system:serviceaccount:" + account + ":" + account

	// Objects are spread over namespaceCount namespaces. quietNamespace is for the few Foos
	// that a measurement adds to the many.
	namespaceCount = 10
	quietNamespace = "bench-quiet"
	// goroutines is how many objects are created at the same time. More are no faster on
	// two cores.
	goroutines = 16
)

// bench holds what all measurements need.
type bench struct {
	// devcluster is the path of the devcluster binary, repository that of this
	// repository.
	devcluster, repository string
}

// session is a cluster for one measurement.
type session struct {
	*testcluster.Cluster
	bench bench
	// whole is true if kube-controller-manager, kube-scheduler and KWOK run, too.
	whole bool
	// folder has the cluster's data, the programs' logs, and the kubeconfig of their account.
	folder string
	// kube and clients are the benchmark's own clients, with the administrator's permissions
	// and without rate limits.
	kube    kubernetes.Interface
	clients clientset.Interface
	// probes is the number of Foos that were created to show when caches are full.
	probes int
	// started are all programs that were started.
	mu      sync.Mutex
	started []*process
}

// in starts a cluster with the CRD of Foo and the account of the measured programs, calls do
// with it, stops what do has started, and removes the cluster.
func (b bench) in(ctx context.Context, whole bool, do func(*session) error) (err error) {
	s := &session{bench: b, whole: whole}
	if s.folder, err = os.MkdirTemp("", "foo-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.folder)) }()
	flag := testcluster.ControlPlaneOnly
	if whole {
		flag = "-audit-bodies=foos.samplecontroller.k8s.io" // for isAvailable
	}
	if s.Cluster, err = testcluster.StartCluster(ctx, b.devcluster, s.path("data"), flag); err != nil {
		return err
	}
	defer func() {
		for _, p := range s.started {
			p.stop()
		}
		if err != nil && ctx.Err() == nil && s.HasEnded() {
			err = errors.Join(err, errors.New("the cluster ended by itself: see the logs of devcluster"))
		}
		_ = s.Stop() // that it ended by itself has been reported
	}()
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("preparing a cluster: %w", err)
	}
	return do(s)
}

func (s *session) path(name string) string { return filepath.Join(s.folder, name) }

// kubeconfig is the path of the kubeconfig of the measured program's account.
func (s *session) kubeconfig() string { return s.path("contender.kubeconfig") }

func (s *session) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	config, err := testcluster.LoadConfig(s.Kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "foo-bench"
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if s.clients, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	if err := errors.Join(s.installFoo(ctx), s.kubectl(ctx, "create", "-f", s.manifest("cluster.yaml"))); err != nil {
		return err
	}
	return errors.Join(
		s.kubectl(ctx, "wait", "--for=condition=Dangling=False", "flowschemas", "--all", "--timeout=30s"),
		testcluster.WriteTokenKubeconfig(ctx, s.kube, s.Kubeconfig, s.kubeconfig(), account, account))
}

// manifest is the path of one of the files in test/bench/manifests.
func (s *session) manifest(name string) string {
	return filepath.Join(s.bench.repository, "test/bench/manifests", name)
}

// installFoo installs the CustomResourceDefinition and waits until it is served. The API
// server delays each creation of a Foo while the CRD has been established for less than a
// few seconds, so its conditions get an older transition time.
func (s *session) installFoo(ctx context.Context) error {
	err := testcluster.InstallCRDs(ctx, s.bench.devcluster, s.Kubeconfig, s.bench.repository)
	if err != nil {
		return err
	}
	return s.kubectl(ctx, "patch", "crd/foos.samplecontroller.k8s.io", "--subresource=status", "--type=merge",
		"--patch-file", s.manifest("established.yaml"))
}

func (s *session) kubectl(ctx context.Context, args ...string) error {
	_, err := testcluster.Kubectl(ctx, s.bench.devcluster, s.Kubeconfig, args...)
	return err
}

// namespaceOf returns the namespace of the object with a number.
func namespaceOf(number int) string { return fmt.Sprintf("bench-%d", number%namespaceCount) }

// nameOf returns the name of the Foo with a number.
func nameOf(number int) string { return fmt.Sprintf("foo-%d", number) }

// createFoo creates the Foo with a number in a namespace.
func (s *session) createFoo(ctx context.Context, namespace string, number int) (*samplev1alpha1.Foo, error) {
	foo, err := s.clients.SamplecontrollerV1alpha1().Foos(namespace).
		Create(ctx, objects.Foo(namespace, nameOf(number)), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a Foo: %w", err)
	}
	return foo, nil
}

// waitingFoos creates n Foos without a status, with the numbers from 0, in a namespace, or in all if it is "".
func (s *session) waitingFoos(ctx context.Context, n int, namespace string) ([]*samplev1alpha1.Foo, error) {
	waiting := make([]*samplev1alpha1.Foo, n)
	return waiting, each(ctx, 0, n, func(ctx context.Context, number int) (err error) {
		waiting[number], err = s.createFoo(ctx, cmp.Or(namespace, namespaceOf(number)), number)
		return err
	})
}

// settledFoos creates Foos with the numbers from first to first+n-1 as the controller
// leaves them: with a Deployment and a status.
func (s *session) settledFoos(ctx context.Context, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		foo, err := s.createFoo(ctx, namespaceOf(number), number)
		if err != nil {
			return err
		}
		return objects.Settle(ctx, s.kube, s.clients, foo)
	})
}

// foreignDeployments creates Deployments unrelated to any Foo, with the numbers from
// first to first+n-1.
func (s *session) foreignDeployments(ctx context.Context, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		deployment := objects.Foreign(namespaceOf(number), fmt.Sprintf("foreign-%d", number))
		_, err := s.kube.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a foreign Deployment: %w", err)
		}
		return nil
	})
}

// each calls do with n numbers from first on, several at a time.
func each(ctx context.Context, first, n int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goroutines)
	for number := first; number < first+n && ctx.Err() == nil; number++ {
		group.Go(func() error { return do(ctx, number) })
	}
	return group.Wait()
}
