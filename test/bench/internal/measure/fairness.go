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
	"time"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/bench/internal/observe"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
	"example.com/sample-controller/test/bench/internal/world"
)

// singlesCatchUp bounds the wait for single Foos that have no status when the
// backlog has gone. A queue that is a plain line may have taken up all of that
// again by then, for a resync.
const singlesCatchUp = 3 * time.Minute

// Fairness measures how long single Foos of one namespace take, which arrive at
// some rate: first, for idle, while the program has nothing else to do, then
// while backlog Foos of another namespace wait.
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
		fairness.Busy, err = s.besides(ctx, p, backlog, perSecond)
		return err
	})
	if err != nil {
		return fairness, fmt.Errorf("%s: fairness: %w", p.Name, err)
	}
	return fairness, nil
}

// besides measures single Foos from when the first of a backlog has converged,
// for the program has to start, until the last has.
func (s *session) besides(ctx context.Context, p program.Program, backlog int, perSecond float64) (stats.Latency, error) {
	foos, err := world.WaitingFoos(ctx, s.Cluster, func(int) string { return world.Namespace(0) }, 0, backlog)
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

// singles is singlesUntil some time has passed.
func (s *session) singles(ctx context.Context, name string, perSecond float64, duration time.Duration) (stats.Latency, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return s.singlesUntil(ctx, name, perSecond)
}

// singlesUntil has Foos arrive in the quiet namespace until ctx is done, and
// tells how long it took until they had their Deployments.
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
	lives, err := follow(context.WithoutCancel(ctx), log, all.foos, singlesCatchUp)
	if err != nil {
		return stats.Latency{}, err
	}
	created, _, missing := lives.latencies()
	if missing > 0 {
		return stats.Latency{}, fmt.Errorf("%d of %d single Foos had no status %v after the last was created", missing, len(all.foos), singlesCatchUp)
	}
	return stats.LatencyOf(created), nil
}
