// SPDX-License-Identifier: Apache-2.0

// Arrivals: Foos that are created at random intervals.

package measure

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// action is called for a Foo as soon as its creation is acknowledged.
type action func(context.Context, *samplev1alpha1.Foo) error

// arrived is the result of arrivals.
type arrived struct {
	foos []*samplev1alpha1.Foo
	// late is the longest delay of a create.
	late time.Duration
	// err is the first failure.
	err error
}

// arrivals creates Foos at random intervals, perSecond of them per second on average,
// until ctx is done. It never waits for an answer: a goroutine for each Foo creates it,
// and then calls acknowledged, which may be nil. It returns when all requests have been
// answered. The intervals are the same in each call.
func (s *session) arrivals(ctx context.Context, perSecond float64, foo func(number int) *samplev1alpha1.Foo, acknowledged action) arrived {
	var all arrived
	var mu sync.Mutex
	var wg sync.WaitGroup
	answered := context.WithoutCancel(ctx) // even after ctx is done
	next := time.Now()
	intervals := rand.New(rand.NewPCG(1, 1))
	for number := 0; ; number++ {
		next = next.Add(time.Duration(intervals.ExpFloat64() / perSecond * float64(time.Second)))
		if !until(ctx, next) {
			break
		}
		all.late = max(all.late, time.Since(next))
		wg.Go(func() {
			created, err := s.create(answered, foo(number), acknowledged)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && all.err == nil {
				all.err = err
			}
			all.foos = append(all.foos, created)
		})
	}
	wg.Wait()
	return all
}

// until waits until a moment has come. It returns false if ctx is done before.
func until(ctx context.Context, moment time.Time) bool {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *session) create(ctx context.Context, foo *samplev1alpha1.Foo, acknowledged action) (*samplev1alpha1.Foo, error) {
	created, err := s.Foos.SamplecontrollerV1alpha1().Foos(foo.Namespace).Create(ctx, foo, metav1.CreateOptions{})
	if err == nil && acknowledged != nil {
		err = acknowledged(ctx, created)
	}
	return created, err
}
