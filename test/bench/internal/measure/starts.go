// SPDX-License-Identifier: Apache-2.0

// Starts: what a program needs beside some number of objects.

package measure

import (
	"context"
	"errors"
	"time"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// idleShare is the share of a core below which a program counts as idle, and
	// idleInterval the time over which CPU is measured for that.
	idleShare    = 0.05
	idleInterval = time.Second
)

// StartOptions describe a measurement of programs that start beside objects.
type StartOptions struct {
	// Sizes are the numbers of objects, in ascending order. Foreign makes them Deployments
	// that are unrelated to any Foo, instead of settled Foos with their Deployments.
	Sizes   []int
	Foreign bool
	// Limit bounds the wait for full caches, and that for an idle program. Upstream's syncs
	// the Foo that shows full caches in its turn.
	Limit time.Duration
	// Rest is how long CPU and calls are then counted; 0 skips this.
	Rest time.Duration
}

// Starts measures programs that start beside objects, one after the other. It calls report
// for each start.
func (b *Bench) Starts(
	ctx context.Context, programs []Program, options StartOptions, report func(name string, start results.Start),
) error {
	create := settledFoos
	if options.Foreign {
		create = foreignDeployments
	}
	return b.in(ctx, false, func(s *session) error {
		there := 0
		for _, size := range options.Sizes {
			if err := create(ctx, s.Cluster, there, size-there); err != nil {
				return err
			}
			there = size
			for _, p := range programs {
				start, err := s.measureStart(ctx, p, size, options)
				if err != nil {
					return err
				}
				report(p.Name, start)
			}
		}
		return nil
	})
}

// measureStart starts a program, waits until its caches are full and it is idle, and stops
// it.
func (s *session) measureStart(
	ctx context.Context, p Program, objects int, options StartOptions,
) (start results.Start, err error) {
	running, ready, err := s.startReady(ctx, p, objects, options.Limit)
	if err != nil {
		return start, err
	}
	defer running.stop()
	start.ReadySeconds = ready
	if ready > 0 || objects == 0 {
		idle, used, err := running.idle(ctx, options.Limit)
		if err != nil {
			return start, err
		}
		if !idle.IsZero() {
			start.PassSeconds, start.CPUSeconds = idle.Sub(running.started).Seconds(), used.cpu.Seconds()
		}
	}
	if options.Rest > 0 {
		resting, err := s.beginRest(ctx, running)
		if err != nil {
			return start, err
		}
		if start.Rest, err = resting.end(ctx, options.Rest); err != nil {
			return start, err
		}
	}
	used, err := running.usage()
	start.Holding = results.Holding{Objects: objects, PeakMiB: used.peak, ResidentMiB: used.resident}
	return start, err
}

// startReady starts a program when a Foo waits, and returns when that one has converged,
// which is when the caches are full, or after a limit. seconds is the time that it took, or 0
// for longer than the limit. A program without objects gets no such Foo, and is started only.
func (s *session) startReady(
	ctx context.Context, p Program, objects int, limit time.Duration,
) (running *process, seconds float64, err error) {
	if objects == 0 {
		running, err = s.start(p)
		return running, 0, err
	}
	probe, err := s.createProbe(ctx)
	if err != nil {
		return nil, 0, err
	}
	running, times, err := s.converge(ctx, p, limit, probe)
	if errors.Is(err, errLate) {
		return running, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return running, times[0].Seconds(), nil
}

// createProbe creates a Foo that shows when a program's caches are full.
func (s *session) createProbe(ctx context.Context) (*samplev1alpha1.Foo, error) {
	s.probes++
	return createFoo(ctx, s.Cluster, quietNamespace, s.probes)
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
