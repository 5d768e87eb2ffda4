// SPDX-License-Identifier: Apache-2.0

// Memory: how much a program holds with some numbers of objects.

package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/observe"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// idleShare is the share of a core below which a program counts as idle.
	idleShare = 0.05
	// idleInterval is the interval over which CPU is measured, and idleTimeout bounds the
	// wait.
	idleInterval = 2 * time.Second
	idleTimeout  = 10 * time.Second
	// fullLimit bounds the wait for full caches. Upstream's syncs the Foo that shows it in
	// its turn.
	fullLimit = time.Minute
)

// errLate is the cause of the end of a wait for full caches.
var errLate = errors.New("the caches are not full within the limit")

// Holdings measures the memory of programs that start with some numbers of objects, in
// ascending order: foreign Deployments, or else settled Foos with their Deployments. It
// calls report for each measurement.
func (b *Bench) Holdings(ctx context.Context, programs []program.Program, sizes []int, foreign bool, report func(name string, holding results.Holding)) error {
	err := b.in(ctx, false, func(s *session) error {
		there := 0
		for _, size := range sizes {
			if err := s.add(ctx, there, size-there, foreign); err != nil {
				return err
			}
			there = size
			for _, p := range programs {
				holding, err := s.holding(ctx, p, size > 0)
				if err != nil {
					return err
				}
				holding.Objects = size
				report(p.Name, holding)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

func (s *session) add(ctx context.Context, first, n int, foreign bool) error {
	if foreign {
		return fixtures.ForeignDeployments(ctx, s.Cluster, first, n)
	}
	return fixtures.SettledFoos(ctx, s.Cluster, first, n)
}

// holding starts a program, waits until its caches are full and it is idle, and stops it. A
// program without objects gets no Foo to show the former.
func (s *session) holding(ctx context.Context, p program.Program, objects bool) (results.Holding, error) {
	var running *process.Process
	var err error
	if objects {
		running, _, err = s.startReady(ctx, p, fullLimit)
	} else {
		running, err = s.start(p)
	}
	if err != nil {
		return results.Holding{}, err
	}
	defer running.Stop()
	usage, err := idle(ctx, running)
	if err != nil {
		return results.Holding{}, err
	}
	return results.Holding{PeakMiB: float64(usage.Peak) / mebibyte, ResidentMiB: float64(usage.Resident) / mebibyte}, nil
}

// startReady starts a program when a Foo waits, and returns when that one has converged,
// which is when the caches are full, or after a limit. seconds is the time that it took, or 0
// for longer than the limit.
func (s *session) startReady(ctx context.Context, p program.Program, limit time.Duration) (running *process.Process, seconds float64, err error) {
	probe, err := fixtures.FoosIn(ctx, s.Cluster, func(int) string { return quietNamespace }, s.probes, 1)
	if err != nil {
		return nil, 0, err
	}
	s.probes++
	watch, err := observe.Watch(ctx, s.Cluster, probe, s.whole)
	if err != nil {
		return nil, 0, err
	}
	if running, err = s.start(p); err != nil {
		return nil, 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	times, err := watch.Wait(limited, running.Ended(), nil)
	switch {
	case errors.Is(err, errLate):
		return running, 0, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", p.Name, errors.Join(err, running.Err()))
		running.Stop()
		return nil, 0, err
	}
	return running, times[0].Sub(running.Started).Seconds(), nil
}

// idle waits until a program uses almost no CPU, at most for idleTimeout.
func idle(ctx context.Context, running *process.Process) (process.Usage, error) {
	var before process.Usage
	for end := time.Now().Add(idleTimeout); ; {
		if err := pause(ctx, idleInterval, running); err != nil {
			return before, err
		}
		now, err := running.Usage()
		if err != nil {
			return now, err
		}
		if used := now.CPU - before.CPU; float64(used) < idleShare*float64(idleInterval) || time.Now().After(end) {
			return now, nil
		}
		before = now
	}
}
