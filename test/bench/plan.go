// SPDX-License-Identifier: Apache-2.0

// The measurements of a run.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// sizes holds the numbers of objects, repetitions and durations.
type sizes struct {
	// rounds is how often contenders are compared, and pairs how often each is measured at the same
	// time as ours, while pairFoos wait for each of both.
	rounds, pairs, pairFoos int
	// foos wait in a trial. As installed, CPU and calls are also counted for rest after
	// convergence.
	foos int
	rest time.Duration
	// wholeFoos wait in each of the rounds with all components.
	wholeFoos int
	// attacked is how often the waits of probes are measured for ours; for the others once.
	attacked, probes int
	// holdings lists the numbers of objects at which memory is measured: each up to few in
	// rounds, the others once. peak Foos converge beside as many foreign Deployments.
	holdings     []int
	few          int
	holdingLimit time.Duration
	peak         int
	// large Foos are settled when programs start; CPU and calls are then counted for
	// largeRest, two periods of the controllers' resync. The part scale has the greatest numbers,
	// for ours alone.
	large                 int
	largeLimit, largeRest time.Duration
	greatest              []int
}

var (
	// full is for docs/benchmarks.md, and quick to check that all measurements work.
	full = sizes{
		rounds: 3, pairs: 6, pairFoos: 1000, foos: 2000, rest: time.Minute, wholeFoos: 300, attacked: 3, probes: 100,
		holdings: []int{0, 100, 1000, 10000}, few: 1000, holdingLimit: time.Minute, peak: 10000,
		large: 50000, largeLimit: 2 * time.Minute, largeRest: time.Minute, greatest: []int{100000, 300000},
	}
	quick = sizes{
		rounds: 1, pairs: 2, pairFoos: 100, foos: 200, rest: 4 * time.Second, wholeFoos: 50, attacked: 1, probes: 10,
		holdings: []int{0, 100}, holdingLimit: 10 * time.Second, peak: 500,
		large: 2000, largeLimit: 20 * time.Second, largeRest: 4 * time.Second, greatest: []int{3000},
	}
)

const (
	ours      = "ours"
	unlimited = "upstream-unlimited"
	onRuntime = "controller-runtime"
	bare      = "bare"
	// oneOfTwo is ours for one of the namespaces, while another runs for the next one.
	oneOfTwo = "ours, one of two"
	// limited is ours with a limit of memory, of limitedTo bytes per Foo: 537 MiB for 100,000, about
	// what options.LimitMemory sets where a container may have 600.
	limited   = "ours, limited"
	limitedTo = 5632
)

// contenders are the names of all programs, in the order of the tables.
var contenders = []string{ours, unlimited, onRuntime, bare}

// The tables of measurements. Those of waits have the names of the attacks.
const (
	asInstalled = "Installed" // Foos wait; each program as its installation runs it: GOMAXPROCS=1
	asGoRun     = "GoRun"     // the same, each program as with go run: it uses all cores
	whole       = "Whole"     // Foos wait, with kube-controller-manager, scheduler and KWOK
	settled     = "Settled"   // beside settled Foos and their Deployments
	foreign     = "Foreign"   // beside Deployments unrelated to any Foo
	peak        = "Peak"      // Foos wait, beside such
	large       = "Large"     // beside very many settled Foos
)

// tableWith is the table of ours and another program that run at the same time, as installed.
func tableWith(other string) string { return "With " + other }

// parts are the parts of a run. The part scale is measured only if it is asked for.
var parts = []string{"cpu", "throughput", "whole", "waits", "memory", "large"}

const scale = "scale"

// part makes all measurements of one of the parts. All programs run as they are installed unless
// noted.
func (r *runner) part(ctx context.Context, name string) error {
	// Ours is between the two that it is compared with.
	controllers := []program{r.programs[unlimited], r.programs[ours], r.programs[onRuntime]}
	switch name {
	case "cpu":
		for _, other := range contenders[1:] {
			if err := r.atOnce(ctx, r.programs[ours], r.programs[other]); err != nil {
				return err
			}
		}
		return nil
	case "throughput":
		all := append(slices.Clone(controllers), r.programs[bare])
		if err := r.trials(ctx, asInstalled, r.rounds, trial{foos: r.foos, rest: r.rest}, all...); err != nil {
			return err
		}
		for i := range controllers {
			controllers[i].env = nil
		}
		return r.trials(ctx, asGoRun, r.rounds, trial{foos: r.foos}, controllers...)
	case "whole":
		return r.trials(ctx, whole, r.rounds, trial{foos: r.wholeFoos, whole: true}, controllers...)
	case "waits":
		return r.waits(ctx, controllers)
	case "memory":
		return r.memory(ctx, controllers)
	case "large": // shows when one replica is not enough
		o := options{limit: r.largeLimit, idle: r.largeLimit, rest: r.largeRest}
		return r.starts(ctx, large, []int{r.large}, o, r.programs[ours], r.programs[onRuntime], r.programs[unlimited])
	case scale: // shows where one replica ends, and what two installations make of it
		o := options{limit: 5 * r.largeLimit, idle: 5 * r.largeLimit, rest: r.largeRest}
		one, other, less := r.programs[ours], r.programs[ours], r.programs[ours]
		less.name, less.memory = limited, limitedTo
		other.name, other.namespace = "the other", namespaceOf(1)
		one.name, one.namespace, one.alongside = oneOfTwo, namespaceOf(0), &other
		return r.starts(ctx, large, r.greatest, o, r.programs[ours], less, one)
	}
	return fmt.Errorf("there is no such part: there are %s and %s", strings.Join(parts, ", "), scale)
}

// trial describes what a program finds when it starts.
type trial struct {
	// foos wait, beside so many foreign Deployments.
	foos, foreign int
	// whole also runs kube-controller-manager, kube-scheduler and KWOK.
	whole bool
	rest  time.Duration
}

// trials starts programs while Foos wait, in turn in each round, and measures how they converge.
func (r *runner) trials(ctx context.Context, table string, rounds int, t trial, programs ...program) error {
	r.found.forget(func(m measurement) bool { return m.Table == table })
	for round := 1; round <= rounds; round++ {
		for _, p := range programs {
			err := r.bench.in(ctx, t.whole, func(s *session) error {
				if err := s.foreignDeployments(ctx, 0, t.foreign); err != nil {
					return err
				}
				foos, err := s.waitingFoos(ctx, t.foos, "")
				if err != nil {
					return err
				}
				found, err := s.measure(ctx, p, options{idle: 10 * idleInterval, rest: t.rest}, foos...)
				r.found.add(table, p.name, round, 0, found)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// atOnce starts two programs at the same time in one cluster, each for a namespace in which Foos wait.
// Whatever the machine does then, it does to both, so that a difference of a few percent shows. In
// the next round they exchange their namespaces.
func (r *runner) atOnce(ctx context.Context, programs ...program) error {
	table := tableWith(programs[1].name)
	r.found.forget(func(m measurement) bool { return m.Table == table })
	for round := 1; round <= r.pairs; round++ {
		waiting, found := make([][]*samplev1alpha1.Foo, len(programs)), make([]figures, len(programs))
		err := r.bench.in(ctx, false, func(s *session) (err error) {
			for i := range programs {
				programs[i].namespace = namespaceOf((i + round) % len(programs))
				if waiting[i], err = s.waitingFoos(ctx, r.pairFoos, programs[i].namespace); err != nil {
					return err
				}
			}
			measured, ctx := errgroup.WithContext(ctx)
			for i, p := range programs {
				measured.Go(func() (err error) {
					found[i], err = s.measure(ctx, p, options{idle: 10 * idleInterval}, waiting[i]...)
					return err
				})
			}
			return measured.Wait()
		})
		if err != nil {
			return err
		}
		for i, p := range programs {
			r.found.add(table, p.name, round, 0, found[i])
		}
	}
	return nil
}

// waits measures how long a tenant waits while another attacks.
func (r *runner) waits(ctx context.Context, programs []program) error {
	for _, attack := range attacks {
		r.found.forget(func(m measurement) bool { return m.Table == attack.name })
		for _, p := range programs {
			for round := 1; round == 1 || p.name == ours && round <= r.attacked; round++ {
				found, err := r.bench.waits(ctx, p, attack, r.probes)
				if err != nil {
					return err
				}
				r.found.add(attack.name, p.name, round, 0, found)
			}
		}
	}
	return nil
}

func (r *runner) memory(ctx context.Context, controllers []program) error {
	o := options{limit: r.holdingLimit, idle: r.holdingLimit}
	for _, measured := range []struct {
		table    string
		programs []program
	}{
		{settled, []program{r.programs[ours], r.programs[onRuntime]}},
		// Upstream's is in a cluster of its own: it writes the status of each Foo at its start,
		// without what its types lack, so that the next controller would find none settled.
		{settled, []program{r.programs[unlimited]}},
		{foreign, controllers},
	} {
		if err := r.starts(ctx, measured.table, r.holdings, o, measured.programs...); err != nil {
			return err
		}
	}
	return r.trials(ctx, peak, 1, trial{foos: r.peak, foreign: r.peak}, r.programs[ours], r.programs[unlimited])
}

// starts starts programs beside objects, one after the other, with one waiting Foo: beside foreign
// Deployments for that table, or settled Foos. The numbers of objects are in ascending order.
func (r *runner) starts(ctx context.Context, table string, numbers []int, o options, programs ...program) error {
	r.found.forget(func(m measurement) bool {
		isOf := func(p program) bool { return m.Contender == p.name }
		return m.Table == table && slices.Contains(numbers, m.Objects) && slices.ContainsFunc(programs, isOf)
	})
	return r.bench.in(ctx, false, func(s *session) error {
		create, there := s.settledFoos, 0
		if table == foreign {
			create = s.foreignDeployments
		}
		for _, objects := range numbers {
			if err := create(ctx, there, objects-there); err != nil {
				return err
			}
			there = objects
			if err := r.startEach(ctx, s, table, objects, o, programs); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *runner) startEach(ctx context.Context, s *session, table string, objects int, o options, programs []program) error {
	for round := 1; round == 1 || objects <= r.few && round <= 3; round++ {
		for _, p := range programs {
			found, err := s.beside(ctx, p, objects, o)
			if err != nil {
				return err
			}
			r.found.add(table, p.name, round, objects, found)
		}
	}
	return nil
}
