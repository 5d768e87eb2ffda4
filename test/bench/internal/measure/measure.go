// SPDX-License-Identifier: Apache-2.0

// Package measure makes the measurements. Each has a cluster of its own, so that none is
// affected by another.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/cluster"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/testcluster"
)

const (
	mebibyte = 1 << 20
	// quietNamespace is for the few Foos that a measurement adds to the many.
	quietNamespace = "bench-quiet"
	// convergeTimeout bounds each wait for Foos to converge.
	convergeTimeout = 10 * time.Minute
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 10 * time.Second
)

// Bench holds what all measurements need.
type Bench struct {
	// Devcluster is the path of the devcluster binary, Repository that of this
	// repository.
	Devcluster, Repository string
}

// session is a cluster for one measurement.
type session struct {
	*cluster.Cluster
	// probes is the number of Foos that were created to show when caches are full.
	probes int
	// started are all programs that were started.
	started []*process
}

// in starts a cluster, calls do with it, stops what do has started, and removes the cluster.
func (b *Bench) in(ctx context.Context, whole bool, do func(*session) error) error {
	c, err := cluster.Start(ctx, cluster.Options{
		Program: b.Devcluster, Repository: b.Repository, Whole: whole, Namespaces: append(namespaces(), quietNamespace),
	})
	if err != nil {
		return err
	}
	s := &session{Cluster: c}
	err = do(s)
	for _, p := range s.started {
		p.stop()
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, c.Running())
	}
	return errors.Join(err, c.Stop())
}

// process is a running program.
type process struct {
	*testcluster.Program
	started time.Time
}

// start starts a program in the session's cluster.
func (s *session) start(p Program) (*process, error) {
	// Without a context, because stop sends SIGTERM first.
	command := exec.Command(p.Path, append([]string{"-kubeconfig", s.ContenderKubeconfig}, p.Args...)...)
	command.Env = append(os.Environ(), p.Env...)
	began := time.Now()
	program, err := testcluster.StartProgram(p.Name, s.LogOf(p.Name), command)
	if err != nil {
		return nil, err
	}
	s.started = append(s.started, &process{Program: program, started: began})
	return s.started[len(s.started)-1], nil
}

// stop stops the program with SIGTERM, then with SIGKILL.
func (p *process) stop() { p.Stop(stopGrace) }

// pause waits for some time, unless ctx or the program ends.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.Ended():
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usage is the use of CPU and memory since the start of a process.
type usage struct {
	// cpu is the time in user and system mode, in steps of 10 ms.
	cpu time.Duration
	// peak and resident are MiB of resident memory: the maximum so far, and now.
	peak, resident float64
}

func (p *process) usage() (usage, error) {
	if err := p.Err(); err != nil {
		return usage{}, err
	}
	proc, err := procfs.NewProc(p.ID())
	if err != nil {
		return usage{}, err
	}
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errStat, errStatus); err != nil {
		return usage{}, fmt.Errorf("reading CPU and memory of %s: %w", p.Name, err)
	}
	return usage{
		cpu:      time.Duration(stat.CPUTime() * float64(time.Second)),
		peak:     float64(status.VmHWM) / mebibyte,
		resident: float64(status.VmRSS) / mebibyte,
	}, nil
}

// errLate is the cause of the end of a wait for Foos to converge.
var errLate = errors.New("not within the limit")

// converge starts a program and waits until Foos have converged, or returns errLate after a
// limit. The times are since its start.
func (s *session) converge(
	ctx context.Context, p Program, limit time.Duration, foos ...*samplev1alpha1.Foo,
) (running *process, times []time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	watch, err := s.Watch(foos...)
	if err != nil {
		return nil, nil, err
	}
	if running, err = s.start(p); err != nil {
		return nil, nil, err
	}
	seen, err := watch.Wait(ctx, running.Ended())
	if err != nil {
		return running, nil, fmt.Errorf("%s: %w", p.Name, errors.Join(err, running.Err()))
	}
	for _, at := range seen {
		times = append(times, at.Sub(running.started))
	}
	return running, times, nil
}

const (
	namespaceCount = 10
	// goroutines is how many objects are created at the same time. More are no faster on
	// two cores.
	goroutines = 16
)

// namespaces returns the namespaces that objects are spread over.
func namespaces() []string {
	names := make([]string, namespaceCount)
	for i := range names {
		names[i] = namespaceOf(i)
	}
	return names
}

// namespaceOf returns the namespace of the object with a number.
func namespaceOf(number int) string {
	return fmt.Sprintf("bench-%d", number%namespaceCount)
}

// nameOf returns the name of the Foo with a number.
func nameOf(number int) string {
	return fmt.Sprintf("foo-%d", number)
}

// createFoo creates the Foo with a number in a namespace.
func createFoo(ctx context.Context, c *cluster.Cluster, namespace string, number int) (*samplev1alpha1.Foo, error) {
	foo, err := c.Foos.SamplecontrollerV1alpha1().Foos(namespace).
		Create(ctx, objects.Foo(namespace, nameOf(number)), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a Foo: %w", err)
	}
	return foo, nil
}

// waitingFoos creates n Foos without a status, with the numbers from 0. The last one is created
// last, so that at its resourceVersion all exist.
func waitingFoos(ctx context.Context, c *cluster.Cluster, n int) ([]*samplev1alpha1.Foo, error) {
	foos := make([]*samplev1alpha1.Foo, n)
	create := func(ctx context.Context, i int) (err error) {
		foos[i], err = createFoo(ctx, c, namespaceOf(i), i)
		return err
	}
	if err := each(ctx, 0, n-1, create); err != nil {
		return nil, err
	}
	return foos, create(ctx, n-1)
}

// settledFoos creates Foos with the numbers from first to first+n-1 as the controller
// leaves them: with a Deployment and a status.
func settledFoos(ctx context.Context, c *cluster.Cluster, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		foo, err := createFoo(ctx, c, namespaceOf(number), number)
		if err != nil {
			return err
		}
		return objects.Settle(ctx, c.Kube, c.Foos, foo)
	})
}

// foreignDeployments creates Deployments unrelated to any Foo, with the numbers from
// first to first+n-1.
func foreignDeployments(ctx context.Context, c *cluster.Cluster, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		deployment := objects.Foreign(namespaceOf(number), fmt.Sprintf("foreign-%d", number))
		_, err := c.Kube.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
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
