// SPDX-License-Identifier: Apache-2.0

// The API server and the replicas of the tests.

package election

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

// server is an API server with at most one Lease. Like a real one, it counts resourceVersions
// and refuses an update based on an older one.
type server struct {
	mu       sync.Mutex
	lease    *coordinationv1.Lease
	version  int
	watchers []*watch.RaceFreeFakeWatcher
}

// set replaces the Lease that was based on a version, or deletes it if lease is nil.
func (s *server) set(lease *coordinationv1.Lease, from string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil && s.lease.ResourceVersion != from || s.lease == nil && from != "" {
		return apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", errors.New("it has changed"))
	}
	event := watch.Modified
	if lease == nil {
		event, lease = watch.Deleted, s.lease
		s.lease = nil
	} else {
		s.version++
		lease.ResourceVersion = strconv.Itoa(s.version)
		s.lease = lease.DeepCopy()
	}
	for _, watcher := range s.watchers {
		watcher.Action(event, lease.DeepCopy())
	}
	return nil
}

// get returns a copy of the Lease, or an empty Lease if there is none.
func (s *server) get() *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := ptr.Deref(s.lease, coordinationv1.Lease{})
	return lease.DeepCopy()
}

func (s *server) holder() string { return ptr.Deref(s.get().Spec.HolderIdentity, "") }

// seize gives the Lease to another holder, like a manual edit.
func (s *server) seize(holder string) {
	lease := s.get()
	lease.Spec.HolderIdentity = &holder
	_ = s.set(lease, lease.ResourceVersion)
}

// candidate is a replica that competes for the Lease, with its connection to the server.
type candidate struct {
	coordinationclient.LeaseInterface // a call that is not implemented panics
	*server
	down          atomic.Bool  // each call fails
	hung          atomic.Bool  // the next call hangs
	blind         atomic.Bool  // it has no permission to watch
	delay         atomic.Int64 // of responses to writes
	reads, writes atomic.Int64

	stop  context.CancelFunc
	terms atomic.Int64  // calls of lead
	lost  atomic.Bool   // the context passed to lead ended before lead did
	ended chan struct{} // closed when Run has returned err
	err   error
}

func (c *candidate) Leases(string) coordinationclient.LeaseInterface { return c }

func (c *candidate) reach(ctx context.Context) error {
	if c.hung.Swap(false) {
		<-ctx.Done()
	}
	if c.down.Load() {
		return errors.New("connection refused")
	}
	return ctx.Err()
}

func (c *candidate) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	c.reads.Add(1)
	lease, err := c.get(), c.reach(ctx)
	if err == nil && lease.ResourceVersion == "" {
		err = apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	return lease, err
}

func (c *candidate) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.Update(ctx, lease, metav1.UpdateOptions{})
}

func (c *candidate) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	c.writes.Add(1)
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	written := lease.DeepCopy()
	err := c.set(written, lease.ResourceVersion)
	select {
	case <-time.After(time.Duration(c.delay.Load())):
		return written, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *candidate) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if c.blind.Load() || c.down.Load() {
		return nil, errors.New("no watches here")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	watcher := watch.NewRaceFreeFake()
	c.watchers = append(c.watchers, watcher)
	return watcher, nil
}

func (c *candidate) config(name string) Config {
	return Config{
		Client: c, Namespace: "ns", Name: "lease", Identity: name,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// work is what a leader does. It should end when ctx is done, and must end when held is done.
type work = func(ctx, held context.Context) error

// drains returns work that ends some time after it is stopped.
func drains(d time.Duration) work {
	return func(ctx, held context.Context) error {
		stopped := make(chan struct{})
		defer context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(stopped) }) })()
		select {
		case <-stopped:
		case <-held.Done():
		}
		return nil
	}
}

func compete(t *testing.T, s *server, name string, w work, setups ...func(*candidate)) *candidate {
	t.Helper()
	logger := klog.LoggerWithName(ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2))), name)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	c := &candidate{server: s, stop: stop, ended: make(chan struct{})}
	for _, setup := range setups {
		setup(c)
	}
	go func() {
		defer close(c.ended)
		c.err = Run(ctx, c.config(name), func(held context.Context) error {
			c.terms.Add(1)
			defer context.AfterFunc(held, func() { c.lost.Store(true) })()
			err := w(ctx, held)
			c.lost.Store(held.Err() != nil)
			return err
		})
	}()
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	synctest.Wait()
	return c
}

// leads waits until one of the candidates leads, and returns it and how long that took.
func leads(t *testing.T, latest time.Duration, candidates ...*candidate) (*candidate, time.Duration) {
	t.Helper()
	for start := time.Now(); time.Since(start) <= latest; advance(10 * time.Millisecond) {
		for _, c := range candidates {
			if c.terms.Load() > 0 {
				return c, time.Since(start)
			}
		}
	}
	t.Fatalf("no candidate leads after %v", latest)
	return nil, 0
}

// ends returns the result of Run, and fails the test if that takes longer than latest.
func (c *candidate) ends(t *testing.T, latest time.Duration) error {
	t.Helper()
	if advance(latest); !c.hasEnded() {
		t.Fatalf("it has not ended after %v", latest)
	}
	return c.err
}

func (c *candidate) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// advance moves the clock of a test's bubble forward, then waits until every goroutine in the
// bubble is idle. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this sets the clock forward
	synctest.Wait()
}
