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
	"example.com/sample-controller/test/testcluster"
)

const (
	mebibyte = 1 << 20
	// convergeTimeout bounds each wait for Foos to converge.
	convergeTimeout = 10 * time.Minute
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 10 * time.Second
)

// process is a running program.
type process struct {
	*testcluster.Program
	started time.Time
}

// start starts a program in the session's cluster.
func (s *session) start(p Program) (*process, error) {
	// Without a context, because stop sends SIGTERM first.
	command := exec.Command(p.Path, append([]string{"-kubeconfig", s.kubeconfig()}, p.Args...)...)
	command.Env = append(os.Environ(), p.Env...)
	began := time.Now()
	program, err := testcluster.StartProgram(p.Name, s.path(p.Name+".log"), command)
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
// limit. The times are since its start, and the requests those that it has made.
func (s *session) converge(
	ctx context.Context, p Program, limit time.Duration, foos ...*samplev1alpha1.Foo,
) (running *process, made *requests, times []time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	if made, err = s.record(ctx); err != nil {
		return nil, nil, nil, err
	}
	if running, err = s.start(p); err != nil {
		return nil, nil, nil, err
	}
	converged, err := made.converged(ctx, running, foos)
	for _, at := range converged {
		times = append(times, at.Sub(running.started))
	}
	return running, made, times, err
}
