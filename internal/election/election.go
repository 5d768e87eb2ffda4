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

// Package election has one of several replicas work at a time, by a Lease.
//
// It adds to client-go's leaderelection what the work needs around it. The
// Lease is given back only after the work has ended. A leader steps down as
// soon as it reads another's name in the Lease, and never gives back what is
// another's. A standby watches the Lease, so that it takes over at once when the
// Lease is given back, and on time when it expires.
package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// ErrLost says that the Lease was lost: it could not be renewed in time, or
// another has it.
var ErrLost = errors.New("lost the Lease")

// Config says which Lease to compete for, and how.
type Config struct {
	// Client should be for the Lease alone, so that no other call delays a
	// renewal.
	Client coordinationv1.LeasesGetter
	// Namespace and Name are the Lease's.
	Namespace, Name string
	// Identity is unlike that of any other replica, and new at each start.
	Identity string
	// Recorder is told who leads. It may be nil.
	Recorder resourcelock.EventRecorder
	// LeaseDuration, RenewDeadline and RetryPeriod are those of
	// leaderelection.LeaderElectionConfig.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Watchdog, if not nil, is what tells of a leader that neither renews its
	// Lease nor stops.
	Watchdog *leaderelection.HealthzAdaptor
}

// Run competes for the Lease until ctx is done, and calls lead, once, when it
// has it. The context given to lead does not end with ctx: it ends if the Lease
// is lost, and then lead must drop what it is doing, for another may begin.
//
// When ctx is done, or lead returns, Run gives the Lease back and returns what
// lead has returned; up to then, however long that takes, the Lease is renewed. An
// error that is ErrLost means that it was lost: Run has waited for lead, but no
// longer than RenewDeadline, and lead may be running still. What it returns later
// is dropped. Any other error is a wrong Config.
func Run(ctx context.Context, config Config, lead func(held context.Context) error) error {
	outlivesCtx := context.WithoutCancel(ctx)
	held, lose := context.WithCancel(outlivesCtx)
	defer lose()
	candidacy, withdraw := context.WithCancel(outlivesCtx)
	defer withdraw()

	standby, endStandby := context.WithCancel(candidacy)
	lock := config.newLock(klog.FromContext(ctx), func() {
		lose()
		withdraw()
	})
	ended := make(chan error, 1) // buffered: it may be that nobody waits any more
	elector, err := config.newElector(ctx, lock, func(context.Context) {
		endStandby()
		ended <- lead(held)
		withdraw()
	})
	if err != nil {
		return fmt.Errorf("electing by Lease %s: %w", lock.Describe(), err)
	}
	defer context.AfterFunc(ctx, func() {
		if !lock.acquired.Load() {
			withdraw()
		}
	})()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer endStandby()
	watching.Go(func() { config.watchLease(standby, lock.news) })

	// The lock tells what goes wrong. To the elector, a stop is a failure, too.
	elector.Run(klog.NewContext(candidacy, klog.Logger{}))
	if !lock.acquired.Load() {
		return nil
	}
	if candidacy.Err() == nil {
		lose() // it was not we who ended this
	}
	inTime, result := within(ended, config.RenewDeadline)
	if !inTime || held.Err() != nil {
		return errors.Join(fmt.Errorf("%w %s: another replica may lead now", ErrLost, lock.Describe()), result)
	}
	config.release(ctx, lock.Interface)
	return result
}

// newElector returns client-go's elector.
func (c *Config) newElector(ctx context.Context, lock resourcelock.Interface, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	logger := klog.FromContext(ctx)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          c.Name,
		LeaseDuration: c.LeaseDuration,
		RenewDeadline: c.RenewDeadline,
		RetryPeriod:   c.RetryPeriod / pacing,
		WatchDog:      c.Watchdog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity == "" {
					return // given back, and free for a moment
				}
				logger.Info("The Lease has a new holder", "lease", lock.Describe(), "holder", identity, "self", identity == c.Identity)
			},
		},
		// The elector would give the Lease back while the work goes on, and even
		// if another holds it by then.
		ReleaseOnCancel: false,
	})
	if err == nil && c.Watchdog != nil {
		c.Watchdog.SetLeaderElection(elector)
	}
	return elector, err
}

// release gives the Lease back, if it is still ours, so that another need not
// wait for it to expire.
func (c *Config) release(ctx context.Context, lock resourcelock.Interface) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.RenewDeadline)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := lock.Get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || record.HolderIdentity != c.Identity {
			return err
		}
		now := metav1.Now()
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1,
			AcquireTime:          now,
			RenewTime:            now,
			LeaderTransitions:    record.LeaderTransitions,
		})
	})
	if err != nil {
		logger.Error(err, "Giving back the Lease failed: another replica has to wait until it expires", "lease", lock.Describe())
		return
	}
	logger.Info("Gave back the Lease", "lease", lock.Describe())
}

// callTimeout bounds each call, so that one that hangs leaves time for another
// before the Lease is lost.
func (c *Config) callTimeout() time.Duration { return c.RenewDeadline / 2 }

// within returns whether a result comes within the limit, and the result.
func within(results <-chan error, limit time.Duration) (inTime bool, result error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case result = <-results:
		return true, result
	case <-timer.C:
		return false, nil
	}
}
