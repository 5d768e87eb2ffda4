// SPDX-License-Identifier: Apache-2.0

// Package measure makes the measurements. Each has a cluster of its own, so that none is
// affected by another.
package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/calls"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/observe"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
)

const (
	mebibyte = 1 << 20
	// quietNamespace is for the few Foos that a measurement adds to the many.
	quietNamespace = "bench-quiet"
	// convergeTimeout bounds each wait for Foos to converge.
	convergeTimeout = 10 * time.Minute
)

// Bench holds what all measurements need.
type Bench struct {
	// Devcluster is the path of the devcluster binary, Repository that of this
	// repository.
	Devcluster, Repository string
}

// session is a cluster for one measurement.
type session struct {
	*devcluster.Cluster
	whole bool
	// probes is the number of Foos that were created to show when caches are full.
	probes int
}

// in starts a cluster, calls do with it, and removes it.
func (b *Bench) in(ctx context.Context, whole bool, do func(*session) error) error {
	cluster, err := devcluster.Start(ctx, devcluster.Options{
		Program: b.Devcluster, Repository: b.Repository, Whole: whole,
		Namespaces: append(fixtures.Namespaces(), quietNamespace),
	})
	if err != nil {
		return err
	}
	err = do(&session{Cluster: cluster, whole: whole})
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, cluster.Running())
	}
	return errors.Join(err, cluster.Stop())
}

// start starts a program in the session's cluster.
func (s *session) start(p program.Program) (*process.Process, error) {
	return process.Start(p.Name, s.LogOf(p.Name), p.Path, p.Env, append([]string{"-kubeconfig", s.ContenderKubeconfig}, p.Args...)...)
}

func (s *session) counter(ctx context.Context) (*calls.Counter, error) {
	return calls.NewCounter(ctx, s.Kube, s.AuditLog(), devcluster.User)
}

// converge starts a program and waits until Foos have converged. The program keeps
// running unless there is an error. The times are since its start.
func (s *session) converge(ctx context.Context, p program.Program, foos []*samplev1alpha1.Foo) (running *process.Process, times []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	watch, err := observe.Watch(ctx, s.Cluster, foos, s.whole)
	if err != nil {
		return nil, nil, err
	}
	running, err = s.start(p)
	if err != nil {
		return nil, nil, err
	}
	seen, err := watch.Wait(ctx, running.Ended(), nil)
	if err != nil {
		err = errors.Join(err, running.Err())
		running.Stop()
		return nil, nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	for _, at := range seen {
		times = append(times, at.Sub(running.Started))
	}
	return running, times, nil
}

// pause waits for some time, unless ctx or the program ends.
func pause(ctx context.Context, d time.Duration, running *process.Process) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-running.Ended():
		return running.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// perFoo divides counts by a number of Foos.
func perFoo(counts map[string]float64, foos int) map[string]float64 {
	shares := maps.Clone(counts)
	for kind := range shares {
		shares[kind] /= float64(foos)
	}
	return shares
}

func perFooMilliseconds(d time.Duration, foos int) float64 {
	return d.Seconds() * 1000 / float64(foos)
}
