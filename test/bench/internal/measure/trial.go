// SPDX-License-Identifier: Apache-2.0

// Trials: a program starts while Foos wait, beside other objects.

package measure

import (
	"context"
	"errors"
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
	// Settle is how long after convergence CPU and calls are still counted.
	Settle time.Duration
	// Rest is how long calls are counted after the program is idle; 0 skips this.
	Rest time.Duration
}

// whileWaiting returns the options of a program that is measured for some time after it has
// made Foos converge.
func whileWaiting(settle time.Duration) Options {
	return Options{Limit: convergeTimeout, Idle: 10 * idleInterval, Settle: settle}
}

// TrialOptions describe the objects of a Trial, and what to measure.
type TrialOptions struct {
	// Foos wait when the program starts, beside Foreign Deployments.
	Foos, Foreign int
	// Whole also runs kube-controller-manager, kube-scheduler and KWOK.
	Whole bool
	// Settle and Rest are those of Options, and Restart is the Settle of a restart that
	// follows, with one more Foo; 0 skips that.
	Settle, Rest, Restart time.Duration
}

// Trial starts a program while Foos wait, and measures how it makes them converge. The
// restart is nil if it was skipped.
func (b *Bench) Trial(
	ctx context.Context, p Program, o TrialOptions,
) (trial results.Run, restart *results.Run, err error) {
	err = b.in(ctx, o.Whole, func(s *session) error {
		if err := foreignDeployments(ctx, s.Cluster, 0, o.Foreign); err != nil {
			return err
		}
		foos, err := waitingFoos(ctx, s.Cluster, o.Foos)
		if err != nil {
			return err
		}
		options := whileWaiting(o.Settle)
		options.Rest = o.Rest
		if trial, err = s.measure(ctx, p, o.Foreign, options, foos...); err != nil || o.Restart == 0 {
			return err
		}
		again, err := s.beside(ctx, p, o.Foos, whileWaiting(o.Restart))
		restart = &again
		return err
	})
	return trial, restart, err
}

// Starts measures programs that start beside objects, one after the other, with one waiting
// Foo. The sizes are the numbers of objects, in ascending order: settled Foos with their
// Deployments, or Deployments that are foreign to any Foo. It calls report for each start.
func (b *Bench) Starts(
	ctx context.Context, programs []Program, sizes []int, foreign bool, o Options, report func(name string, start results.Run),
) error {
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
				start, err := s.beside(ctx, p, size, o)
				if err != nil {
					return err
				}
				report(p.Name, start)
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
	probe, err := createFoo(ctx, s.Cluster, quietNamespace, s.probes)
	if err != nil {
		return run, err
	}
	return s.measure(ctx, p, objects, o, probe)
}

// measure measures a program from its start until it rests, and stops it.
func (s *session) measure(
	ctx context.Context, p Program, objects int, o Options, foos ...*samplev1alpha1.Foo,
) (run results.Run, err error) {
	counter, err := s.Count(ctx)
	if err != nil {
		return run, err
	}
	running, times, err := s.converge(ctx, p, o.Limit, foos...)
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
	run = results.Run{Foos: len(foos), Objects: objects, CPUConverged: milliseconds(converged.cpu)}
	if !late {
		if err := s.awaitIdle(ctx, running, o.Idle, &run); err != nil {
			return run, err
		}
	}
	resting, err := s.beginRest(ctx, running)
	if err != nil {
		return run, err
	}
	if err := running.pause(ctx, o.Settle-time.Since(settling)); err != nil {
		return run, err
	}
	settled, err := running.usage()
	if err != nil {
		return run, err
	}
	run.CPUSettled, run.SettledSeconds = milliseconds(settled.cpu), max(o.Settle, idleInterval).Seconds()
	counts, err := counter.Next(ctx)
	if err != nil {
		return run, err
	}
	addTimes(&run, times, counts, running.started, foos)
	if o.Rest > 0 {
		if run.Rest, err = resting.end(ctx, o.Rest); err != nil {
			return run, err
		}
	}
	used, err := running.usage()
	run.PeakMiB, run.ResidentMiB = used.peak, used.resident
	return run, err
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// addTimes adds what the times of convergence and the calls say. Those for the Foo of beside
// do not count.
func addTimes(
	run *results.Run, times []time.Duration, counts cluster.Counts, started time.Time, foos []*samplev1alpha1.Foo,
) {
	run.Calls, run.Refused = counts.ByKind, counts.Refused
	for _, write := range counts.Writes {
		if write.Namespace == quietNamespace {
			run.Calls[write.Verb+" "+write.Path()]--
		}
	}
	maps.DeleteFunc(run.Calls, func(_ string, n float64) bool { return n == 0 })
	if len(times) == 0 {
		return
	}
	last := times[len(times)-1]
	run.FirstSeconds, run.HalfSeconds, run.Seconds = times[0].Seconds(), times[(len(times)-1)/2].Seconds(), last.Seconds()
	if events := lastFirstEvent(counts.Writes, foos); !events.IsZero() {
		run.EventSeconds = max(last, events.Sub(started)).Seconds()
	}
}

// awaitIdle waits until a program writes nothing and uses almost no CPU, and notes since
// when that is so, unless it is not within a limit.
func (s *session) awaitIdle(ctx context.Context, running *process, limit time.Duration, run *results.Run) error {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
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
		writes, err := log.Next()
		if err != nil {
			return err
		}
		isWriting := slices.ContainsFunc(writes, func(write audit.Write) bool { return write.User == cluster.User })
		if !isWriting && float64(used.cpu-before) < idleShare*float64(idleInterval) {
			run.IdleSeconds, run.CPUIdle = began.Sub(running.started).Seconds(), milliseconds(used.cpu)
			return nil
		}
	}
	return nil
}

// atRest is a time in which no object changes. It may overlap with that of Options.Settle.
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
	return results.Rest{
		Seconds: duration.Seconds(), Calls: counts.ByKind, CPUMilliseconds: milliseconds(after.cpu - r.before.cpu),
	}, err
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
