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

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/cluster"
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
}

// in starts a cluster, calls do with it, and removes it.
func (b *Bench) in(ctx context.Context, whole bool, do func(*session) error) error {
	c, err := cluster.Start(ctx, cluster.Options{
		Program: b.Devcluster, Repository: b.Repository, Whole: whole, Namespaces: append(namespaces(), quietNamespace),
	})
	if err != nil {
		return err
	}
	err = do(&session{Cluster: c})
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
	return &process{Program: program, started: began}, nil
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
	return usageOf(p.ID())
}

func usageOf(pid int) (usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, err
	}
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errStat, errStatus); err != nil {
		return usage{}, fmt.Errorf("reading CPU and memory of process %d: %w", pid, err)
	}
	return usage{
		cpu:      time.Duration(stat.CPUTime() * float64(time.Second)),
		peak:     float64(status.VmHWM) / mebibyte,
		resident: float64(status.VmRSS) / mebibyte,
	}, nil
}

// converge starts a program and waits until Foos have converged. The program keeps
// running unless there is an error. The times are since its start.
func (s *session) converge(ctx context.Context, p Program, foos ...*samplev1alpha1.Foo) (running *process, times []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	watch, err := s.Watch(ctx, foos...)
	if err != nil {
		return nil, nil, err
	}
	if running, err = s.start(p); err != nil {
		return nil, nil, err
	}
	seen, err := watch.Wait(ctx, running.Ended())
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, errors.Join(err, running.Err()))
		running.stop()
		return nil, nil, err
	}
	for _, at := range seen {
		times = append(times, at.Sub(running.started))
	}
	return running, times, nil
}
