// SPDX-License-Identifier: Apache-2.0

// Fairness: how long a Foo of one namespace waits behind many of another.

package measure

import (
	"context"
	"fmt"
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/bench/internal/observe"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
)

// singlesCatchUp bounds the wait for single Foos without a status after the backlog has
// been processed. A FIFO queue may contain all Foos of the backlog again by then, for a
// resync.
const singlesCatchUp = 3 * time.Minute

// Fairness measures how long single Foos in one namespace take to get a Deployment. They
// arrive at a rate: first for the time idle, while the program has nothing else to do,
// then while backlog Foos in another namespace wait.
func (b *Bench) Fairness(ctx context.Context, p program.Program, backlog int, perSecond float64, idle time.Duration) (fairness results.Fairness, err error) {
	err = b.in(ctx, false, func(s *session) error {
		fairness = results.Fairness{Backlog: backlog, PerSecond: perSecond}
		running, err := s.warm(ctx, p)
		if err != nil {
			return err
		}
		fairness.Idle, err = s.singles(ctx, "idle", perSecond, idle)
		running.Stop()
		if err != nil {
			return err
		}
		fairness.Busy, err = s.busySingles(ctx, p, backlog, perSecond)
		return err
	})
	if err != nil {
		return fairness, fmt.Errorf("%s: fairness: %w", p.Name, err)
	}
	return fairness, nil
}

// busySingles measures single Foos while a backlog is processed: from when its first Foo
// has converged, so that the program's start does not count, until the last has.
func (s *session) busySingles(ctx context.Context, p program.Program, backlog int, perSecond float64) (stats.Latency, error) {
	foos, err := fixtures.WaitingFoos(ctx, s.Cluster, func(int) string { return fixtures.Namespace(0) }, 0, backlog)
	if err != nil {
		return stats.Latency{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	watch, err := observe.Watch(ctx, s.Cluster, foos, false)
	if err != nil {
		return stats.Latency{}, err
	}
	running, err := s.start(p)
	if err != nil {
		return stats.Latency{}, err
	}
	defer running.Stop()
	busy, done := context.WithCancel(ctx)
	first, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer done()
		began := false
		_, err := watch.Wait(ctx, running.Ended(), func(*samplev1alpha1.Foo) {
			if !began {
				began = true
				close(first)
			}
		})
		ended <- err
	}()
	select {
	case <-first:
	case err := <-ended:
		return stats.Latency{}, err
	}
	latency, err := s.singlesUntil(busy, "busy", perSecond)
	if err != nil {
		return latency, err
	}
	return latency, <-ended
}

// singles calls singlesUntil for some time.
func (s *session) singles(ctx context.Context, name string, perSecond float64, duration time.Duration) (stats.Latency, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return s.singlesUntil(ctx, name, perSecond)
}

// singlesUntil creates Foos in the quiet namespace until ctx is done, and returns how
// long they took to get their Deployments.
func (s *session) singlesUntil(ctx context.Context, name string, perSecond float64) (stats.Latency, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return stats.Latency{}, err
	}
	all := s.arrivals(ctx, perSecond, func(i int) *samplev1alpha1.Foo {
		return objects.Foo(quietNamespace, fmt.Sprintf("%s-%d", name, i))
	}, nil)
	if all.err != nil {
		return stats.Latency{}, all.err
	}
	timelines, err := readTimelines(context.WithoutCancel(ctx), log, all.foos, singlesCatchUp)
	if err != nil {
		return stats.Latency{}, err
	}
	created, _, missing := timelines.latencies()
	if missing > 0 {
		return stats.Latency{}, fmt.Errorf("%d of %d single Foos had no status %v after the last was created", missing, len(all.foos), singlesCatchUp)
	}
	return stats.LatencyOf(created), nil
}
