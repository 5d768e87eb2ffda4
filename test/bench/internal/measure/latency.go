// SPDX-License-Identifier: Apache-2.0

// Latency: how long Foos take that arrive at a constant rate.

package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
)

const (
	// catchUp bounds the wait for Foos without a status after the last has arrived.
	catchUp = 20 * time.Second
	// auditInterval is how often the audit log is read meanwhile.
	auditInterval = 250 * time.Millisecond
	// warmUp is how many Foos converge before the measurement starts.
	warmUp = 20
)

// directClient holds clients of the measured account. It writes without a controller.
type directClient struct {
	kube kubernetes.Interface
	foos clientset.Interface
}

func (s *session) newDirectClient() (*directClient, error) {
	config := *s.Contender
	config.QPS = -1
	var direct directClient
	var errs [2]error
	direct.kube, errs[0] = kubernetes.NewForConfig(devcluster.Protobuf(&config))
	direct.foos, errs[1] = clientset.NewForConfig(&config)
	return &direct, errors.Join(errs[:]...)
}

// Latency measures a program while Foos arrive at some shares of limit, in Foos per
// second, each share for a while. If p is nil, a client without a controller creates the
// Deployment as soon as the Foo is acknowledged.
func (b *Bench) Latency(ctx context.Context, p *program.Program, limit float64, shares []float64, duration time.Duration) (loads []results.Load, err error) {
	err = b.in(ctx, false, func(s *session) error {
		acknowledged, stop, err := s.startActor(ctx, p)
		if err != nil {
			return err
		}
		defer stop()
		for number, share := range shares {
			load, err := s.load(ctx, share*limit, duration, number, acknowledged)
			if err != nil {
				return err
			}
			load.Share = share
			loads = append(loads, load)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	return loads, nil
}

// startActor starts the program, or returns the action of the client without a
// controller.
func (s *session) startActor(ctx context.Context, p *program.Program) (acknowledged action, stop func(), err error) {
	if p == nil {
		direct, err := s.newDirectClient()
		if err != nil {
			return nil, nil, err
		}
		return direct.settle, func() {}, nil
	}
	running, err := s.warm(ctx, *p)
	if err != nil {
		return nil, nil, err
	}
	return nil, running.Stop, nil
}

// warm starts a program and waits until a few Foos have converged.
func (s *session) warm(ctx context.Context, p program.Program) (*process.Process, error) {
	foos, err := fixtures.FoosIn(ctx, s.Cluster, func(int) string { return quietNamespace }, 0, warmUp)
	if err != nil {
		return nil, err
	}
	running, _, err := s.converge(ctx, p, foos)
	return running, err
}

// settle makes the two writes for a Foo.
func (d *directClient) settle(ctx context.Context, foo *samplev1alpha1.Foo) error {
	return objects.Settle(ctx, d.kube, d.foos, foo)
}

// load creates Foos at a rate for a while and returns how long they took.
func (s *session) load(ctx context.Context, perSecond float64, duration time.Duration, number int, acknowledged action) (results.Load, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return results.Load{}, err
	}
	arriving, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	all := s.arrivals(arriving, perSecond, func(i int) *samplev1alpha1.Foo {
		return objects.Foo(fixtures.Namespace(i), fmt.Sprintf("load-%d-%d", number, i))
	}, acknowledged)
	if all.err != nil {
		return results.Load{}, all.err
	}
	timelines, err := readTimelines(ctx, log, all.foos, catchUp)
	if err != nil {
		return results.Load{}, err
	}
	created, status, missing := timelines.latencies()
	return results.Load{
		PerSecond: perSecond, Foos: len(all.foos), Missing: missing, LateMilliseconds: stats.Milliseconds(all.late),
		Created: stats.LatencyOf(created), Status: stats.LatencyOf(status),
	}, nil
}
