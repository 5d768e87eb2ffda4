/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/world"
)

const (
	// trailing is how long nothing more must have been written after the last
	// convergence where no other time is given, and trailingLimit how long that
	// is waited for: some programs write for ever.
	trailing      = time.Second
	trailingLimit = 10 * trailing
)

// TrialOptions say what a Trial is to find, and what to do after it.
type TrialOptions struct {
	// Foos wait when the program starts, beside Foreign Deployments.
	Foos, Foreign int
	// Whole is with kube-controller-manager, scheduler and KWOK.
	Whole bool
	// Settle is how long after convergence CPU and calls are still counted.
	Settle time.Duration
	// Rest is how long calls are counted from when nothing more is written; 0 is
	// not at all.
	Rest time.Duration
	// Restart is how long calls are counted after a restart; 0 is no restart.
	Restart time.Duration
}

// Outcome is what a Trial has measured. Rest and Restart are nil where they were
// not asked for.
type Outcome struct {
	Trial   results.Trial
	Rest    *results.Rest
	Restart *results.Restart
}

// Trial starts a program where Foos wait and measures how it makes them converge.
func (b *Bench) Trial(ctx context.Context, p program.Program, options TrialOptions) (outcome Outcome, err error) {
	err = b.in(ctx, options.Whole, func(s *session) error {
		if err := world.ForeignDeployments(ctx, s.Cluster, 0, options.Foreign); err != nil {
			return err
		}
		foos, err := world.WaitingFoos(ctx, s.Cluster, world.Namespace, 0, options.Foos)
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
	if err := trail(ctx, running, log, options.over(foos)); err != nil {
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
	last := times[len(times)-1]
	told := untilTold(counts.Writes, foos)
	outcome.Trial = results.Trial{
		Foos: options.Foos, Foreign: options.Foreign,
		Seconds: last.Seconds(), FirstSeconds: times[0].Seconds(), HalfSeconds: times[(len(times)-1)/2].Seconds(), PerSecond: float64(options.Foos) / last.Seconds(),
		PerSecondEvents: perSecondOrNever(options.Foos, max(last, told.Sub(running.Started)), told),
		CPUConverged:    perFooMilliseconds(converged.CPU, options.Foos), CPUSettled: perFooMilliseconds(settled.CPU, options.Foos),
		SettledSeconds: max(options.Settle, trailing).Seconds(), PeakMiB: float64(settled.Peak) / mebibyte,
		Calls: perFoo(counts.ByKind, options.Foos), Refused: float64(counts.Refused) / float64(options.Foos),
		OthersWrites: float64(len(counts.OthersWrites)) / float64(options.Foos),
	}
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

// over says when what follows convergence is over: where more is measured after
// it, or more than one event belongs to a Foo, not before nothing more is written;
// else when each Foo has had its event.
func (o TrialOptions) over(foos []*samplev1alpha1.Foo) func(writes []audit.Write) bool {
	if o.Settle > 0 || o.Whole {
		return func([]audit.Write) bool { return false }
	}
	return func(writes []audit.Write) bool { return !untilTold(writes, foos).IsZero() }
}

// trail waits until a program writes nothing more, or until all that it has
// written since the log was opened is enough. Some write for ever, so the time is
// limited.
func trail(ctx context.Context, running *process.Process, log *audit.Log, enough func(writes []audit.Write) bool) error {
	var all []audit.Write
	for until := time.Now().Add(trailingLimit); time.Now().Before(until); {
		if err := pause(ctx, trailing, running); err != nil {
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

// rest is a time in which nothing happens, and which may lie in that of settling.
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

// end counts what a program has asked for, when a rest has lasted long enough.
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

// restart starts a program again where all has converged but one Foo, which shows
// when the program is at work.
func (s *session) restart(ctx context.Context, p program.Program, counter *calls.Counter, options TrialOptions) (*results.Restart, error) {
	if _, err := counter.Next(ctx); err != nil {
		return nil, err
	}
	probe, err := world.FoosIn(ctx, s.Cluster, func(int) string { return quietNamespace }, 0, 1)
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

// untilTold is when the last of the Foos got its first Event, whose name begins
// with the Foo's; 0 if one of them has none.
func untilTold(writes []audit.Write, foos []*samplev1alpha1.Foo) (last time.Time) {
	first := map[string]time.Time{}
	for _, write := range writes {
		foo, _, _ := strings.Cut(write.Name, ".")
		key := write.Namespace + "/" + foo
		if _, told := first[key]; !told && write.Path() == "events" && write.Verb == "create" && write.OK() {
			first[key] = write.Done
		}
	}
	for _, foo := range foos {
		at, told := first[foo.Namespace+"/"+foo.Name]
		if !told {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// perSecondOrNever is a rate, or 0 for what has not happened.
func perSecondOrNever(foos int, took time.Duration, happened time.Time) float64 {
	if happened.IsZero() {
		return 0
	}
	return float64(foos) / took.Seconds()
}
