// SPDX-License-Identifier: Apache-2.0

// Package election uses a Lease to let only one of several replicas work at a time.
//
// It extends client-go's leaderelection. A leader releases the Lease only after its work has
// ended. It steps down as soon as it reads another holder in the Lease, and never releases
// another replica's Lease. A standby watches the Lease, so that it takes over at once when
// the Lease is released, and on time when it expires.
//
// End the process when Run returns ErrLost: work that still runs would write beside the next
// leader. Run needs the verbs get, create, update and watch on leases; without watch, a standby
// takes over up to 2.2 RetryPeriods later. In each RetryPeriod, a leader writes and a standby reads.
//
// This file runs the elector; lock.go has its calls and the standby's watch.
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

// ErrLost means that the Lease was lost: it could not be renewed in time, or another
// replica holds it.
var ErrLost = errors.New("lost the Lease")

// Config describes which Lease to compete for, and how.
type Config struct {
	// Client should be used only for the Lease, so that no other call delays a renewal.
	Client coordinationv1.LeasesGetter
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// Identity differs from every other replica's, and is new at each start.
	Identity string
	// Recorder records an Event when this replica starts and stops leading. It may be nil.
	Recorder resourcelock.EventRecorder
	// LeaseDuration, RenewDeadline and RetryPeriod are as in
	// leaderelection.LeaderElectionConfig.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Watchdog, if not nil, reports a leader that neither renews its Lease nor stops.
	Watchdog *leaderelection.HealthzAdaptor
}

// Run competes for the Lease until ctx is done, and calls lead once, when it holds the Lease.
// The context passed to lead does not end with ctx. It ends if the Lease is lost; lead must
// then abandon its work, because another replica may begin.
//
// When ctx is done or lead returns, Run releases the Lease and returns the result of lead.
// Until then, however long that takes, it renews the Lease. ErrLost means that the Lease was
// lost: Run has waited for lead, but no longer than RenewDeadline. If lead is still running,
// its result is dropped. Any other error means an invalid Config.
func Run(ctx context.Context, config Config, lead func(leaseCtx context.Context) error) error {
	leaseCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	standby, endStandby := context.WithCancel(leaseCtx)
	defer endStandby()
	lock := config.newLock(klog.FromContext(ctx), func() { end(ErrLost) })
	defer lock.expiry.Stop()
	ended := make(chan error, 1) // buffered, because Run may have stopped waiting
	elector, err := config.newElector(ctx, lock, func(context.Context) {
		endStandby()
		ended <- lead(leaseCtx)
		end(nil)
	})
	if err != nil {
		return fmt.Errorf("competing for Lease %s: %w", lock.Describe(), err)
	}
	defer context.AfterFunc(ctx, func() { lock.unlessLeading(func() { end(nil) }) })()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer endStandby()
	watching.Go(func() { config.watchLease(standby, lock.tryNow) })

	for !lock.leading && leaseCtx.Err() == nil {
		attempt, endAttempt := context.WithCancel(leaseCtx)
		lock.unlessLeading(func() { lock.endAttempt = endAttempt })
		// The lock logs failures. The elector would also log a stop as a failure.
		elector.Run(klog.NewContext(attempt, klog.Logger{}))
		endAttempt()
	}
	if !lock.leading {
		return nil
	}
	end(ErrLost) // if it has not ended for another reason, the elector has given up
	var result error
	select {
	case result = <-ended:
	case <-time.After(config.RenewDeadline):
	}
	if errors.Is(context.Cause(leaseCtx), ErrLost) {
		return errors.Join(fmt.Errorf("%w %s: another replica may lead now", ErrLost, lock.Describe()), result)
	}
	config.release(ctx, lock.Interface)
	return result
}

// newElector returns client-go's elector. It can run again after its Run has returned,
// and remembers since when it has observed the Lease.
func (c *Config) newElector(ctx context.Context, lock resourcelock.Interface, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	logger := klog.FromContext(ctx)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          c.Name,
		LeaseDuration: c.LeaseDuration,
		RenewDeadline: c.RenewDeadline,
		RetryPeriod:   c.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity == "" {
					return // released, and free for a moment
				}
				logger.Info("The Lease has a new holder", "lease", lock.Describe(), "holder", identity, "self", identity == c.Identity)
			},
		},
		// The elector would release the Lease while the work continues, and even if
		// another replica already holds it.
		ReleaseOnCancel: false,
	})
	if err == nil && c.Watchdog != nil {
		c.Watchdog.SetLeaderElection(elector)
	}
	return elector, err
}

// ReleaseTimeout bounds how long Run takes to release the Lease.
const ReleaseTimeout = 5 * time.Second

// release releases the Lease if this replica still holds it, so that no other replica has to
// wait until it expires.
func (c *Config) release(ctx context.Context, lock resourcelock.Interface) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(ReleaseTimeout, c.RenewDeadline))
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := lock.Get(ctx)
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
	if err != nil && !apierrors.IsNotFound(err) {
		logger.Error(err, "Failed to release the Lease; another replica must wait until it expires", "lease", lock.Describe())
		return
	}
	logger.Info("Released the Lease", "lease", lock.Describe())
}
