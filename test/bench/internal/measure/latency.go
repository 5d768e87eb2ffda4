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
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/objects"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
	"example.com/sample-controller/test/bench/internal/world"
)

const (
	// catchUp bounds the wait for Foos that have no status when the last has arrived.
	catchUp = 20 * time.Second
	// auditInterval is how often the audit log is read meanwhile.
	auditInterval = 250 * time.Millisecond
	// warmUp is how many Foos converge before anything is measured.
	warmUp = 20
)

// bareClient are clients of the measured account.
type bareClient struct {
	kube kubernetes.Interface
	foos clientset.Interface
}

func (s *session) newBareClient() (*bareClient, error) {
	config := *s.Contender
	config.QPS = -1
	var bare bareClient
	var errs [2]error
	bare.kube, errs[0] = kubernetes.NewForConfig(devcluster.Protobuf(&config))
	bare.foos, errs[1] = clientset.NewForConfig(&config)
	return &bare, errors.Join(errs[:]...)
}

// Latency measures a program while Foos arrive at some shares of limit, which is
// in Foos per second, each for a while. p nil is the bare client: it creates the
// Deployment the moment that the Foo is acknowledged.
func (b *Bench) Latency(ctx context.Context, p *program.Program, limit float64, shares []float64, duration time.Duration) (loads []results.Load, err error) {
	err = b.in(ctx, false, func(s *session) error {
		acknowledged, stop, err := s.whoActs(ctx, p)
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

// whoActs starts the program, or returns what the bare client does for a Foo.
func (s *session) whoActs(ctx context.Context, p *program.Program) (acknowledged action, stop func(), err error) {
	if p == nil {
		bare, err := s.newBareClient()
		if err != nil {
			return nil, nil, err
		}
		return bare.settle, func() {}, nil
	}
	running, err := s.warm(ctx, *p)
	if err != nil {
		return nil, nil, err
	}
	return nil, running.Stop, nil
}

// warm starts a program and has it make a few Foos converge.
func (s *session) warm(ctx context.Context, p program.Program) (*process.Process, error) {
	foos, err := world.FoosIn(ctx, s.Cluster, func(int) string { return quietNamespace }, 0, warmUp)
	if err != nil {
		return nil, err
	}
	running, _, err := s.converge(ctx, p, foos)
	return running, err
}

// settle makes the two writes that a Foo takes.
func (b *bareClient) settle(ctx context.Context, foo *samplev1alpha1.Foo) error {
	return objects.Settle(ctx, b.kube, b.foos, foo)
}

// load has Foos arrive for a while and tells how long they took.
func (s *session) load(ctx context.Context, perSecond float64, duration time.Duration, number int, acknowledged action) (results.Load, error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return results.Load{}, err
	}
	arriving, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	all := s.arrivals(arriving, perSecond, func(i int) *samplev1alpha1.Foo {
		return objects.Foo(world.Namespace(i), fmt.Sprintf("load-%d-%d", number, i))
	}, acknowledged)
	if all.err != nil {
		return results.Load{}, all.err
	}
	lives, err := follow(ctx, log, all.foos, catchUp)
	if err != nil {
		return results.Load{}, err
	}
	created, status, missing := lives.latencies()
	return results.Load{
		PerSecond: perSecond, Foos: len(all.foos), Missing: missing, LateMilliseconds: stats.Milliseconds(all.late),
		Created: stats.LatencyOf(created), Status: stats.LatencyOf(status),
	}, nil
}
