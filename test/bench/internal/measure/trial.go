// SPDX-License-Identifier: Apache-2.0

// Trials: a program starts while Foos wait, and makes them converge.

package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/calls"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
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
	// Rest is how long calls are counted after the writes have ended; 0 skips this.
	Rest time.Duration
	// Restart is how long calls are counted after a restart; 0 skips the restart.
	Restart time.Duration
}

// Outcome is the result of a Trial. Rest and Restart are nil if they were skipped.
type Outcome struct {
	Trial   results.Trial
	Rest    *results.Rest
	Restart *results.Restart
}

// Trial starts a program while Foos wait, and measures how it makes them converge.
func (b *Bench) Trial(ctx context.Context, p program.Program, options TrialOptions) (outcome Outcome, err error) {
	err = b.in(ctx, options.Whole, func(s *session) error {
		if err := fixtures.ForeignDeployments(ctx, s.Cluster, 0, options.Foreign); err != nil {
			return err
		}
		foos, err := fixtures.WaitingFoos(ctx, s.Cluster, fixtures.Namespace, 0, options.Foos)
		if err != nil {
			return err
		}
		outcome, err = s.trial(ctx, p, options, foos)
		return err
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return outcome, nil
}

func (s *session) trial(ctx context.Context, p program.Program, options TrialOptions, foos []*samplev1alpha1.Foo) (outcome Outcome, err error) {
	counter, err := s.counter(ctx)
	if err != nil {
		return outcome, err
	}
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return outcome, err
	}
	running, times, err := s.converge(ctx, p, foos)
	if err != nil {
		return outcome, err
	}
	defer running.Stop()
	converged, err := running.Usage()
	if err != nil {
		return outcome, err
	}
	settling := time.Now()
	if err := awaitQuiet(ctx, running, log, options.enough(foos)); err != nil {
		return outcome, err
	}
	var resting *rest
	if options.Rest > 0 {
		if resting, err = s.beginRest(ctx, running); err != nil {
			return outcome, err
		}
	}
	if err := pause(ctx, options.Settle-time.Since(settling), running); err != nil {
		return outcome, err
	}
	settled, err := running.Usage()
	if err != nil {
		return outcome, err
	}
	counts, err := counter.Next(ctx)
	if err != nil {
		return outcome, err
	}
	outcome.Trial = options.result(running.Started, times, counts, foos)
	outcome.Trial.CPUConverged = perFooMilliseconds(converged.CPU, options.Foos)
	outcome.Trial.CPUSettled = perFooMilliseconds(settled.CPU, options.Foos)
	outcome.Trial.PeakMiB = float64(settled.Peak) / mebibyte
	if resting != nil {
		if outcome.Rest, err = resting.end(ctx, running, options.Rest); err != nil {
			return outcome, err
		}
	}
	if options.Restart > 0 {
		running.Stop()
		if outcome.Restart, err = s.restart(ctx, p, counter, options); err != nil {
			return outcome, err
		}
	}
	return outcome, nil
}

// result returns what the times of convergence and the calls say about a trial.
func (o TrialOptions) result(started time.Time, times []time.Duration, counts calls.Counts, foos []*samplev1alpha1.Foo) results.Trial {
	first, half, last := times[0], times[(len(times)-1)/2], times[len(times)-1]
	lastEvent := lastFirstEvent(counts.Writes, foos)
	return results.Trial{
		Foos: o.Foos, Foreign: o.Foreign,
		Seconds: last.Seconds(), FirstSeconds: first.Seconds(), HalfSeconds: half.Seconds(),
		PerSecond:       float64(o.Foos) / last.Seconds(),
		PerSecondEvents: perSecondOrNever(o.Foos, max(last, lastEvent.Sub(started)), lastEvent),
		SettledSeconds:  max(o.Settle, quietTime).Seconds(),
		Calls:           perFoo(counts.ByKind, o.Foos),
		Refused:         float64(counts.Refused) / float64(o.Foos),
		OthersWrites:    float64(len(counts.OtherWrites)) / float64(o.Foos),
	}
}

// enough returns the condition that ends the wait for the writes after convergence. If
// more is measured later, or a Foo has more than one Event, the wait ends only when the
// writes do; otherwise it ends when each Foo has an Event.
func (o TrialOptions) enough(foos []*samplev1alpha1.Foo) func(writes []audit.Write) bool {
	if o.Settle > 0 || o.Whole {
		return func([]audit.Write) bool { return false }
	}
	return func(writes []audit.Write) bool { return !lastFirstEvent(writes, foos).IsZero() }
}

// awaitQuiet waits until a program stops writing, or until enough returns true for all
// that it has written since the log was opened. Some programs never stop, so the wait is
// bounded.
func awaitQuiet(ctx context.Context, running *process.Process, log *audit.Log, enough func(writes []audit.Write) bool) error {
	var all []audit.Write
	for until := time.Now().Add(quietTimeout); time.Now().Before(until); {
		if err := pause(ctx, quietTime, running); err != nil {
			return err
		}
		writes, err := log.Next()
		if err != nil {
			return err
		}
		all = append(all, writes...)
		more := slices.ContainsFunc(writes, func(write audit.Write) bool { return write.User == devcluster.User })
		if !more || enough(all) {
			return nil
		}
	}
	return nil
}

// rest is a time in which no object changes. It may overlap with that of
// TrialOptions.Settle.
type rest struct {
	counter *calls.Counter
	began   time.Time
	before  process.Usage
}

func (s *session) beginRest(ctx context.Context, running *process.Process) (*rest, error) {
	before, err := running.Usage()
	if err != nil {
		return nil, err
	}
	counter, err := s.counter(ctx)
	if err != nil {
		return nil, err
	}
	return &rest{counter: counter, began: time.Now(), before: before}, nil
}

// end returns the requests of a program since the rest began, after it has lasted long
// enough.
func (r *rest) end(ctx context.Context, running *process.Process, duration time.Duration) (*results.Rest, error) {
	if err := pause(ctx, duration-time.Since(r.began), running); err != nil {
		return nil, err
	}
	after, err := running.Usage()
	if err != nil {
		return nil, err
	}
	counts, err := r.counter.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &results.Rest{
		Seconds: duration.Seconds(), Calls: counts.ByKind,
		CPUMilliseconds: (after.CPU - r.before.CPU).Seconds() * 1000,
	}, nil
}

// restart starts a program again when all Foos but one have converged. That one shows
// when the program is ready.
func (s *session) restart(ctx context.Context, p program.Program, counter *calls.Counter, options TrialOptions) (*results.Restart, error) {
	if _, err := counter.Next(ctx); err != nil {
		return nil, err
	}
	probe, err := fixtures.FoosIn(ctx, s.Cluster, func(int) string { return quietNamespace }, 0, 1)
	if err != nil {
		return nil, err
	}
	running, times, err := s.converge(ctx, p, probe)
	if err != nil {
		return nil, err
	}
	defer running.Stop()
	if err := pause(ctx, options.Restart, running); err != nil {
		return nil, err
	}
	counts, err := counter.Next(ctx)
	if err != nil {
		return nil, err
	}
	for _, write := range counts.Writes {
		if write.Namespace == quietNamespace {
			counts.ByKind[write.Verb+" "+write.Path()]--
		}
	}
	for kind, n := range counts.ByKind {
		if n == 0 {
			delete(counts.ByKind, kind)
		}
	}
	return &results.Restart{Foos: options.Foos, ReadySeconds: times[0].Seconds(), Seconds: options.Restart.Seconds(), Calls: counts.ByKind}, nil
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

// perSecondOrNever returns a rate, or 0 for an event that did not happen.
func perSecondOrNever(foos int, took time.Duration, happened time.Time) float64 {
	if happened.IsZero() {
		return 0
	}
	return float64(foos) / took.Seconds()
}
