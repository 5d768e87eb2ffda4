// SPDX-License-Identifier: Apache-2.0

// Memory: how much a program holds with some numbers of objects, and what very many settled
// Foos cost it.

package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// idleShare is the share of a core below which a program counts as idle, and
	// idleInterval the time over which CPU is measured for that.
	idleShare    = 0.05
	idleInterval = time.Second
	// holdingStart and holdingIdle bound the waits for full caches and for an idle program.
	// Upstream's syncs the Foo that shows full caches in its turn.
	holdingStart, holdingIdle = time.Minute, 10 * time.Second
	// largeStart and largeIdle are the same with very many Foos. Upstream's is busy for longer.
	largeStart, largeIdle = 2 * time.Minute, 2 * time.Minute
	// largeStep is how many Foos are created between two reports of progress.
	largeStep = 10000
)

// errLate is the cause of the end of a wait for full caches.
var errLate = errors.New("the caches are not full within the limit")

// Holdings measures the memory of programs that start with some numbers of objects, in
// ascending order: foreign Deployments, or else settled Foos with their Deployments. It
// calls report for each measurement.
func (b *Bench) Holdings(ctx context.Context, programs []Program, sizes []int, foreign bool, report func(name string, holding results.Holding)) error {
	create := settledFoos
	if foreign {
		create = foreignDeployments
	}
	return b.in(ctx, false, func(s *session) error {
		there := 0
		for _, size := range sizes {
			if err := create(ctx, s.Cluster, there, size-there); err != nil {
				return err
			}
			there = size
			for _, p := range programs {
				holding, err := s.holding(ctx, p, size)
				if err != nil {
					return err
				}
				report(p.Name, holding)
			}
		}
		return nil
	})
}

// holding starts a program, waits until its caches are full and it is idle, and stops it. A
// program without objects gets no Foo to show the former.
func (s *session) holding(ctx context.Context, p Program, objects int) (holding results.Holding, err error) {
	var running *process
	if objects > 0 {
		running, _, err = s.startReady(ctx, p, holdingStart)
	} else {
		running, err = s.start(p)
	}
	if err != nil {
		return holding, err
	}
	defer running.stop()
	_, used, err := running.idle(ctx, holdingIdle)
	return results.Holding{Objects: objects, PeakMiB: used.peak, ResidentMiB: used.resident}, err
}

// startReady starts a program when a Foo waits, and returns when that one has converged,
// which is when the caches are full, or after a limit. seconds is the time that it took, or 0
// for longer than the limit.
func (s *session) startReady(ctx context.Context, p Program, limit time.Duration) (running *process, seconds float64, err error) {
	probe, err := createFoo(ctx, s.Cluster, quietNamespace, s.probes)
	if err != nil {
		return nil, 0, err
	}
	s.probes++
	watch, err := s.Watch(ctx, probe)
	if err != nil {
		return nil, 0, err
	}
	if running, err = s.start(p); err != nil {
		return nil, 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	times, err := watch.Wait(limited, running.Ended())
	switch {
	case errors.Is(err, errLate):
		return running, 0, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", p.Name, errors.Join(err, running.Err()))
		running.stop()
		return nil, 0, err
	}
	return running, times[0].Sub(running.started).Seconds(), nil
}

// idle waits until a program uses almost no CPU. It returns the time since when that is so,
// or the zero time after a limit.
func (p *process) idle(ctx context.Context, limit time.Duration) (since time.Time, used usage, err error) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		before, began := used.cpu, time.Now()
		if err := p.pause(ctx, idleInterval); err != nil {
			return since, used, err
		}
		if used, err = p.usage(); err != nil {
			return since, used, err
		}
		if float64(used.cpu-before) < idleShare*float64(idleInterval) {
			return began, used, nil
		}
	}
	return since, used, nil
}

// LargeOptions describe a measurement of very many Foos.
type LargeOptions struct {
	// Foos are settled when a program starts.
	Foos int
	// Rest is how long CPU and calls are counted when the program is idle: a multiple of the
	// period of the resync.
	Rest time.Duration
	// Say reports progress.
	Say func(format string, args ...any)
}

// Large measures programs that start beside very many settled Foos, one after the other.
func (b *Bench) Large(ctx context.Context, programs []Program, options LargeOptions) (results.Large, error) {
	found := results.Large{Foos: options.Foos, Starts: map[string]results.Start{}}
	return found, b.in(ctx, false, func(s *session) error {
		for there := 0; there < options.Foos; there += largeStep {
			options.Say("    %d of %d settled Foos", there, options.Foos)
			if err := settledFoos(ctx, s.Cluster, there, min(largeStep, options.Foos-there)); err != nil {
				return err
			}
		}
		for _, p := range programs {
			options.Say("    %s starts beside %d settled Foos", p.Name, options.Foos)
			start, err := s.largeStart(ctx, p, options)
			if err != nil {
				return err
			}
			found.Starts[p.Name] = start
		}
		return nil
	})
}

// largeStart starts a program when all Foos are settled but one.
func (s *session) largeStart(ctx context.Context, p Program, options LargeOptions) (start results.Start, err error) {
	running, seconds, err := s.startReady(ctx, p, largeStart)
	if err != nil {
		return start, err
	}
	defer running.stop()
	start.ReadySeconds = seconds
	if seconds > 0 {
		idle, used, err := running.idle(ctx, largeIdle)
		if err != nil {
			return start, err
		}
		if !idle.IsZero() {
			start.PassSeconds, start.CPUSeconds = idle.Sub(running.started).Seconds(), used.cpu.Seconds()
		}
	}
	resting, err := s.beginRest(ctx, running)
	if err != nil {
		return start, err
	}
	if start.Rest, err = resting.end(ctx, options.Rest); err != nil {
		return start, err
	}
	used, err := running.usage()
	start.Holding = results.Holding{Objects: options.Foos, PeakMiB: used.peak, ResidentMiB: used.resident}
	return start, err
}
