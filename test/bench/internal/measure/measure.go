// SPDX-License-Identifier: Apache-2.0

// Package measure makes the measurements. Each has its own cluster, so that none is
// affected by another.
package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/results"
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
	select {
	case <-time.After(d):
		return nil
	case <-p.Ended():
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usage is the use of CPU and memory since the start of a process.
type usage struct {
	// cpu is milliseconds of user and system time, in steps of 10.
	cpu float64
	// peak and resident are MiB of resident memory: the maximum so far, and now.
	peak, resident float64
}

func (p *process) usage() (usage, error) {
	if err := p.Err(); err != nil {
		return usage{}, err
	}
	proc, errProc := procfs.NewProc(p.ID())
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errProc, errStat, errStatus); err != nil {
		return usage{}, fmt.Errorf("reading CPU and memory of %s: %w", p.Name, err)
	}
	return usage{cpu: stat.CPUTime() * 1000, peak: float64(status.VmHWM) / mebibyte, resident: float64(status.VmRSS) / mebibyte}, nil
}

// errLate is the cause of the end of a wait for Foos to converge.
var errLate = errors.New("not within the limit")

// converge starts a program and waits until Foos have converged, or returns errLate after a
// limit. The times are since its start, in ascending order, and the requests those that it has
// made.
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
	if err != nil {
		return running, made, nil, err
	}
	for _, at := range converged {
		times = append(times, at.Sub(running.started))
	}
	slices.Sort(times)
	return running, made, times, nil
}

const (
	// idleShare is the share of a core below which a program that writes nothing counts as
	// idle, and idleInterval the time over which that is measured.
	idleShare    = 0.05
	idleInterval = time.Second
)

// Options describe what to measure.
type Options struct {
	// Limit bounds the wait for the convergence of all Foos. With Late, it is no error to
	// reach it: Upstream's syncs the Foo that shows full caches in its turn.
	Limit time.Duration
	Late  bool
	// Idle bounds the wait for an idle program. Some never stop writing.
	Idle time.Duration
	// Rest is how long CPU and calls are still counted after the program is idle.
	Rest time.Duration
}

// TrialOptions describe the objects of a Trial, and what to measure.
type TrialOptions struct {
	// Foos wait when the program starts, beside Foreign Deployments.
	Foos, Foreign int
	// Whole also runs kube-controller-manager, kube-scheduler and KWOK.
	Whole bool
	// Rest is that of Options, and Restart the Rest of a restart that follows, with one more
	// Foo; 0 skips that.
	Rest, Restart time.Duration
}

// Trial starts a program while Foos wait, and measures how it makes them converge. The
// restart is nil if it was skipped.
func (b *Bench) Trial(
	ctx context.Context, p Program, o TrialOptions,
) (trial results.Run, restart *results.Run, err error) {
	err = b.in(ctx, o.Whole, func(s *session) error {
		if err := s.foreignDeployments(ctx, 0, o.Foreign); err != nil {
			return err
		}
		foos, err := s.waitingFoos(ctx, o.Foos)
		if err != nil {
			return err
		}
		options := Options{Limit: convergeTimeout, Idle: 10 * idleInterval, Rest: o.Rest}
		if trial, err = s.measure(ctx, p, o.Foreign, options, foos...); err != nil || o.Restart == 0 {
			return err
		}
		options.Rest = o.Restart
		again, err := s.beside(ctx, p, o.Foos, options)
		restart = &again
		return err
	})
	return trial, restart, err
}

// Starts measures programs that start beside objects, one after the other, with one waiting
// Foo. The sizes are the numbers of objects, in ascending order: settled Foos with their
// Deployments, or Deployments that are foreign to any Foo. Each program starts as often as
// repeats says, in rounds. It calls report for each start.
func (b *Bench) Starts(
	ctx context.Context, programs []Program, sizes []int, repeats func(size int) int, foreign bool, o Options,
	report func(name string, round int, start results.Run),
) error {
	return b.in(ctx, false, func(s *session) error {
		create, there := s.settledFoos, 0
		if foreign {
			create = s.foreignDeployments
		}
		for _, size := range sizes {
			if err := create(ctx, there, size-there); err != nil {
				return err
			}
			there = size
			for round := 1; round <= repeats(size); round++ {
				for _, p := range programs {
					start, err := s.beside(ctx, p, size, o)
					if err != nil {
						return err
					}
					report(p.Name, round, start)
				}
			}
		}
		return nil
	})
}

// beside measures a program that starts beside objects that need nothing, and a Foo that
// waits: when that one has converged, the caches are full. Without objects there is no such
// Foo.
func (s *session) beside(ctx context.Context, p Program, objects int, o Options) (run results.Run, err error) {
	if objects == 0 {
		return s.measure(ctx, p, objects, o)
	}
	s.probes++
	probe, err := s.createFoo(ctx, quietNamespace, s.probes)
	if err != nil {
		return run, err
	}
	return s.measure(ctx, p, objects, o, probe)
}

// measure measures a program from its start until it rests, and stops it.
func (s *session) measure(
	ctx context.Context, p Program, objects int, o Options, foos ...*samplev1alpha1.Foo,
) (run results.Run, err error) {
	running, made, times, err := s.converge(ctx, p, o.Limit, foos...)
	late := o.Late && errors.Is(err, errLate)
	if err != nil && !late {
		return run, err
	}
	defer running.stop()
	converged, err := running.usage()
	if err != nil {
		return run, err
	}
	settling := time.Now()
	run = results.Run{Foos: len(foos), Objects: objects, CPUConverged: converged.cpu}
	if !late {
		if err := awaitIdle(ctx, running, made, o.Idle, &run); err != nil {
			return run, err
		}
	}
	if o.Rest > 0 {
		if run.Rest, err = s.atRest(ctx, running, o.Rest); err != nil {
			return run, err
		}
	}
	if run.Calls, run.Refused, err = made.count(ctx); err != nil {
		return run, err
	}
	for _, write := range made.writes {
		if write.Namespace == quietNamespace { // those for the Foo of beside do not count
			run.Calls[write.Verb+" "+write.Path()]--
		}
	}
	maps.DeleteFunc(run.Calls, func(_ string, n float64) bool { return n == 0 })
	if len(times) > 0 {
		run.FirstSeconds, run.HalfSeconds, run.Seconds = times[0].Seconds(), times[(len(times)-1)/2].Seconds(), times[len(times)-1].Seconds()
	}
	used, err := running.usage()
	run.CPUSettled, run.SettledSeconds = used.cpu, time.Since(settling).Seconds()
	run.PeakMiB, run.ResidentMiB = used.peak, used.resident
	return run, err
}

// awaitIdle waits until a program writes nothing and uses almost no CPU, and notes since
// when that is so, unless it is not within a limit.
func awaitIdle(ctx context.Context, running *process, made *requests, limit time.Duration, run *results.Run) error {
	if _, err := made.next(); err != nil {
		return err
	}
	used, err := running.usage()
	if err != nil {
		return err
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		before, began := used.cpu, time.Now()
		if err := running.pause(ctx, idleInterval); err != nil {
			return err
		}
		if used, err = running.usage(); err != nil {
			return err
		}
		writes, err := made.next()
		if err != nil {
			return err
		}
		if len(writes) == 0 && used.cpu-before < idleShare*idleInterval.Seconds()*1000 {
			run.IdleSeconds, run.CPUIdle = began.Sub(running.started).Seconds(), used.cpu
			return nil
		}
	}
	return nil
}

// atRest returns what a program requests and uses in a time in which no object changes.
func (s *session) atRest(ctx context.Context, running *process, duration time.Duration) (rest results.Rest, err error) {
	before, err := running.usage()
	if err != nil {
		return rest, err
	}
	made, err := s.record(ctx)
	if err != nil {
		return rest, err
	}
	if err := running.pause(ctx, duration); err != nil {
		return rest, err
	}
	after, err := running.usage()
	if err != nil {
		return rest, err
	}
	rest.Seconds, rest.CPUMilliseconds = duration.Seconds(), after.cpu-before.cpu
	rest.Calls, _, err = made.count(ctx)
	return rest, err
}
