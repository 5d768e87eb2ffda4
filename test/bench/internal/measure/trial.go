// SPDX-License-Identifier: Apache-2.0

// Trials: a program starts while Foos wait, and makes them converge.

package measure

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/bench/internal/cluster"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// quietTime is how long nothing may be written after the last Foo has converged, if
	// no other time is given. quietTimeout bounds the wait for that, because some
	// programs never stop writing.
	quietTime    = time.Second
	quietTimeout = 10 * quietTime
)

// TrialOptions describe the objects of a Trial, and what to measure after it.
type TrialOptions struct {
	// Foos wait when the program starts, beside Foreign Deployments.
	Foos, Foreign int
	// Whole also runs kube-controller-manager, kube-scheduler and KWOK.
	Whole bool
	// Settle is how long after convergence CPU and calls are still counted.
	Settle time.Duration
	// Rest is how long calls are counted after the writes have ended, and Restart how long
	// after a restart that follows; without Rest, both are skipped.
	Rest, Restart time.Duration
}

// Outcome is the result of a Trial. Rest and Restart are nil if they were skipped.
type Outcome struct {
	Trial   results.Trial
	Rest    *results.Rest
	Restart *results.Restart
}

// Trial starts a program while Foos wait, and measures how it makes them converge.
func (b *Bench) Trial(ctx context.Context, p Program, options TrialOptions) (outcome Outcome, err error) {
	err = b.in(ctx, options.Whole, func(s *session) error {
		if err := foreignDeployments(ctx, s.Cluster, 0, options.Foreign); err != nil {
			return err
		}
		foos, err := waitingFoos(ctx, s.Cluster, options.Foos)
		if err != nil {
			return err
		}
		outcome, err = s.trial(ctx, p, options, foos)
		return err
	})
	return outcome, err
}

func (s *session) trial(
	ctx context.Context, p Program, options TrialOptions, foos []*samplev1alpha1.Foo,
) (outcome Outcome, err error) {
	counter, err := s.Count(ctx)
	if err != nil {
		return outcome, err
	}
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return outcome, err
	}
	running, times, err := s.converge(ctx, p, convergeTimeout, foos...)
	if err != nil {
		return outcome, err
	}
	converged, err := running.usage()
	if err != nil {
		return outcome, err
	}
	settling := time.Now()
	if err := options.awaitQuiet(ctx, running, log, foos); err != nil {
		return outcome, err
	}
	resting, err := s.beginRest(ctx, running)
	if err != nil {
		return outcome, err
	}
	if err := running.pause(ctx, options.Settle-time.Since(settling)); err != nil {
		return outcome, err
	}
	settled, err := running.usage()
	if err != nil {
		return outcome, err
	}
	counts, err := counter.Next(ctx)
	if err != nil {
		return outcome, err
	}
	outcome.Trial = options.result(running.started, times, counts, foos)
	outcome.Trial.CPUConverged = perFoo(converged.cpu, options.Foos)
	outcome.Trial.CPUSettled = perFoo(settled.cpu, options.Foos)
	outcome.Trial.PeakMiB = settled.peak
	if options.Rest == 0 {
		return outcome, nil
	}
	rest, err := resting.end(ctx, options.Rest)
	if err != nil {
		return outcome, err
	}
	running.stop()
	restart, err := s.restart(ctx, p, counter, options)
	outcome.Rest, outcome.Restart = &rest, &restart
	return outcome, err
}

// perFoo returns a share of CPU time in milliseconds.
func perFoo(cpu time.Duration, foos int) float64 { return cpu.Seconds() * 1000 / float64(foos) }

// result returns what the times of convergence and the calls say about a trial.
func (o TrialOptions) result(
	started time.Time, times []time.Duration, counts cluster.Counts, foos []*samplev1alpha1.Foo,
) results.Trial {
	n := float64(o.Foos)
	first, half, last := times[0], times[(len(times)-1)/2], times[len(times)-1]
	trial := results.Trial{
		Foos:    o.Foos,
		Seconds: last.Seconds(), FirstSeconds: first.Seconds(), HalfSeconds: half.Seconds(),
		PerSecond:      n / last.Seconds(),
		SettledSeconds: max(o.Settle, quietTime).Seconds(),
		Calls:          counts.ByKind,
		Refused:        float64(counts.Refused) / n,
	}
	for kind := range trial.Calls {
		trial.Calls[kind] /= n
	}
	if events := lastFirstEvent(counts.Writes, foos); !events.IsZero() {
		trial.PerSecondEvents = n / max(last, events.Sub(started)).Seconds()
	}
	return trial
}

// awaitQuiet waits until a program stops writing. If nothing more is measured later, and a
// Foo has only one Event, it waits at most until each Foo has that. Some programs never
// stop, so the wait is bounded.
func (o TrialOptions) awaitQuiet(ctx context.Context, running *process, log *audit.Log, foos []*samplev1alpha1.Foo) error {
	var all []audit.Write
	for until := time.Now().Add(quietTimeout); time.Now().Before(until); {
		if err := running.pause(ctx, quietTime); err != nil {
			return err
		}
		writes, err := log.Next()
		if err != nil {
			return err
		}
		all = append(all, writes...)
		quiet := !slices.ContainsFunc(writes, func(write audit.Write) bool { return write.User == cluster.User })
		if quiet || o.Settle == 0 && !o.Whole && !lastFirstEvent(all, foos).IsZero() {
			return nil
		}
	}
	return nil
}

// atRest is a time in which no object changes. It may overlap with that of
// TrialOptions.Settle.
type atRest struct {
	running *process
	counter *cluster.Counter
	began   time.Time
	before  usage
}

func (s *session) beginRest(ctx context.Context, running *process) (*atRest, error) {
	before, err := running.usage()
	if err != nil {
		return nil, err
	}
	counter, err := s.Count(ctx)
	if err != nil {
		return nil, err
	}
	return &atRest{running: running, counter: counter, began: time.Now(), before: before}, nil
}

// end returns the requests of a program since the rest began, after it has lasted long
// enough.
func (r *atRest) end(ctx context.Context, duration time.Duration) (found results.Rest, err error) {
	if err := r.running.pause(ctx, duration-time.Since(r.began)); err != nil {
		return found, err
	}
	after, err := r.running.usage()
	if err != nil {
		return found, err
	}
	counts, err := r.counter.Next(ctx)
	if err != nil {
		return found, err
	}
	cpu := (after.cpu - r.before.cpu).Seconds() * 1000
	return results.Rest{Seconds: duration.Seconds(), Calls: counts.ByKind, CPUMilliseconds: cpu}, nil
}

// restart starts a program again when all Foos but one have converged. That one shows
// when the program is ready.
func (s *session) restart(
	ctx context.Context, p Program, counter *cluster.Counter, options TrialOptions,
) (found results.Restart, err error) {
	probe, err := s.createProbe(ctx)
	if err != nil {
		return found, err
	}
	if _, err := counter.Next(ctx); err != nil {
		return found, err
	}
	running, times, err := s.converge(ctx, p, convergeTimeout, probe)
	if err != nil {
		return found, err
	}
	if err := running.pause(ctx, options.Restart); err != nil {
		return found, err
	}
	counts, err := counter.Next(ctx)
	if err != nil {
		return found, err
	}
	for _, write := range counts.Writes {
		if write.Namespace == quietNamespace {
			counts.ByKind[write.Verb+" "+write.Path()]--
		}
	}
	maps.DeleteFunc(counts.ByKind, func(_ string, n float64) bool { return n == 0 })
	return results.Restart{
		Foos: options.Foos, ReadySeconds: times[0].Seconds(), Seconds: options.Restart.Seconds(), Calls: counts.ByKind,
	}, nil
}

// lastFirstEvent returns when the last of the Foos got its first Event, or the zero time
// if one has none. The name of an Event starts with that of its Foo.
func lastFirstEvent(writes []audit.Write, foos []*samplev1alpha1.Foo) (last time.Time) {
	first := map[string]time.Time{}
	for _, write := range writes {
		foo, _, _ := strings.Cut(write.Name, ".")
		key := write.Namespace + "/" + foo
		if _, found := first[key]; !found && write.Path() == "events" && write.Verb == "create" && write.OK() {
			first[key] = write.Done
		}
	}
	for _, foo := range foos {
		at, found := first[foo.Namespace+"/"+foo.Name]
		if !found {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}
