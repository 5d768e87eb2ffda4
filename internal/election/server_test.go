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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// server is an API server with Leases: as a real one does, it counts
// resourceVersions and refuses an update of an older one.
type server struct {
	*fake.Clientset
	// down makes each call fail.
	down atomic.Bool
	// blind makes watches fail.
	blind atomic.Bool
	// gets and updates count the calls.
	gets, updates atomic.Int64
	// watches counts those that are open.
	watches atomic.Int64
	version atomic.Int64
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return s.react(action)
	})
	s.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		if s.blind.Load() {
			return true, nil, errors.New("no watches here")
		}
		opened, err := s.Tracker().Watch(leases, "ns")
		s.watches.Add(1)
		return true, &countedWatch{Interface: opened, closed: sync.OnceFunc(func() { s.watches.Add(-1) })}, err
	})
	return s
}

type countedWatch struct {
	watch.Interface
	closed func()
}

func (w *countedWatch) Stop() {
	w.closed()
	w.Interface.Stop()
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if s.down.Load() {
		return true, nil, errors.New("connection refused")
	}
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		s.gets.Add(1)
	case clienttesting.CreateActionImpl:
		s.stamp(action.GetObject())
	case clienttesting.UpdateActionImpl:
		s.updates.Add(1)
		sent, _ := meta.Accessor(action.GetObject())
		stored, err := s.Tracker().Get(leases, action.GetNamespace(), sent.GetName())
		if err != nil {
			return true, nil, err
		}
		if now, _ := meta.Accessor(stored); now.GetResourceVersion() != sent.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(leases.GroupResource(), sent.GetName(), errors.New("it has changed"))
		}
		s.stamp(action.GetObject())
	}
	return false, nil, nil
}

func (s *server) stamp(object runtime.Object) {
	accessor, _ := meta.Accessor(object)
	accessor.SetResourceVersion(strconv.FormatInt(s.version.Add(1), 10))
}

// holder returns who has the Lease; "none" where there is no Lease.
func (s *server) holder(t *testing.T) string {
	t.Helper()
	stored, err := s.Tracker().Get(leases, "ns", "lease")
	if apierrors.IsNotFound(err) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(stored.(*coordinationv1.Lease).Spec.HolderIdentity, "")
}

// seize gives the Lease to another, as an edit by hand would.
func (s *server) seize(t *testing.T, holder string) {
	t.Helper()
	stored, err := s.Tracker().Get(leases, "ns", "lease")
	if err != nil {
		t.Fatal(err)
	}
	lease := stored.(*coordinationv1.Lease).DeepCopy()
	lease.Spec.HolderIdentity = &holder
	s.stamp(lease)
	if err := s.Tracker().Update(leases, lease, "ns"); err != nil {
		t.Fatal(err)
	}
}

func (s *server) deleteLease(t *testing.T) {
	t.Helper()
	if err := s.Tracker().Delete(leases, "ns", "lease"); err != nil {
		t.Fatal(err)
	}
}

// candidate is a replica that competes for the Lease.
type candidate struct {
	name string
	stop context.CancelFunc
	// leading, drained and lost are true from when the work began, ended, and
	// was told that the Lease is lost.
	leading, drained, lost atomic.Bool
	// ended is closed when Run has returned err.
	ended chan struct{}
	err   error
}

// compete starts a candidate whose work, when it is stopped, takes as long as
// drain to end.
func compete(t *testing.T, s *server, name string, drain time.Duration) *candidate {
	t.Helper()
	return competeWith(t, s, name, func(ctx, held context.Context) error {
		select {
		case <-held.Done():
		case <-ctx.Done():
			select {
			case <-time.After(drain):
			case <-held.Done():
			}
		}
		return nil
	})
}

func competeWith(t *testing.T, s *server, name string, work func(ctx, held context.Context) error) *candidate {
	t.Helper()
	logger := klog.LoggerWithName(ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2))), name)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	c := &candidate{name: name, stop: stop, ended: make(chan struct{})}
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	go func() {
		defer close(c.ended)
		c.err = Run(ctx, configFor(s, name), func(held context.Context) error {
			c.leading.Store(true)
			untold := context.AfterFunc(held, func() { c.lost.Store(true) })
			err := work(ctx, held)
			if untold() && held.Err() != nil {
				c.lost.Store(true) // the work heard of it first
			}
			c.drained.Store(true)
			return err
		})
	}()
	synctest.Wait()
	return c
}

func configFor(s *server, name string) Config {
	return Config{
		Client: s.CoordinationV1(), Namespace: "ns", Name: "lease", Identity: name,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// leadsBetween fails the test if the candidate does not lead within the time, or leads
// before it.
func (c *candidate) leadsBetween(t *testing.T, earliest, latest time.Duration) {
	t.Helper()
	start := time.Now()
	for !c.leading.Load() && time.Since(start) <= latest {
		advance(10 * time.Millisecond)
	}
	if took := time.Since(start); !c.leading.Load() || took < earliest {
		t.Fatalf("%s leads: %v, after %v; want it after %v to %v", c.name, c.leading.Load(), took, earliest, latest)
	}
}

// ends waits until Run has returned, and fails the test if that takes longer.
func (c *candidate) ends(t *testing.T, latest time.Duration) error {
	t.Helper()
	select {
	case <-c.ended:
		synctest.Wait() // so has all that follows from it
		return c.err
	case <-time.After(latest):
		t.Fatalf("%s has not ended after %v", c.name, latest)
		return nil
	}
}

// advance lets time pass in a test's bubble, then waits until every goroutine
// in it has nothing left to do. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this sets the clock forward
	synctest.Wait()
}

func leaseHeldBy(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", ResourceVersion: "1"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15)},
	}
}
