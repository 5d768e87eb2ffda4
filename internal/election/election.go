// SPDX-License-Identifier: Apache-2.0

// Package election lets one of several replicas work at a time, by a Lease.
//
// It adds to client-go's leaderelection what the work needs around it. The Lease is given
// back only after the work has ended. A leader steps down as soon as it reads another's
// name in the Lease, and never gives back another's Lease. A standby watches the Lease, so
// that it takes over at once when the Lease is given back, and on time when it expires.
//
// This file runs the elector; lock.go has its calls, and the watch of a standby.
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

// ErrLost says that the Lease was lost: it could not be renewed in time, or another
// replica has it.
var ErrLost = errors.New("lost the Lease")

// Config says which Lease to compete for, and how.
type Config struct {
	// Client should serve the Lease alone, so that no other call delays a renewal.
	Client coordinationv1.LeasesGetter
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// Identity differs from that of any other replica, and is new at each start.
	Identity string
	// Recorder gets an event when this replica begins and stops to lead. It may be nil.
	Recorder resourcelock.EventRecorder
	// LeaseDuration, RenewDeadline and RetryPeriod are those of
	// leaderelection.LeaderElectionConfig.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Watchdog, if not nil, reports a leader that neither renews its Lease nor stops.
	Watchdog *leaderelection.HealthzAdaptor
}

// Run competes for the Lease until ctx is done, and calls lead, once, when it has it. The
// context given to lead does not end with ctx. It ends if the Lease is lost; lead must
// then drop its work, because another replica may begin.
//
// When ctx is done, or lead returns, Run gives the Lease back and returns the result of
// lead. Until then, however long that takes, it renews the Lease. ErrLost says that the
// Lease was lost: Run has waited for lead, but no longer than RenewDeadline. If lead is
// still running, its result is dropped. Any other error means a wrong Config.
func Run(ctx context.Context, config Config, lead func(leaseCtx context.Context) error) error {
	leaseCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	standby, endStandby := context.WithCancel(leaseCtx)
	defer endStandby()
	lock := config.newLock(klog.FromContext(ctx), func() { end(ErrLost) })
	defer lock.expiry.Stop()
	ended := make(chan error, 1) // buffered: Run may have stopped waiting
	elector, err := config.newElector(ctx, lock, func(context.Context) {
		endStandby()
		ended <- lead(leaseCtx)
		end(nil)
	})
	if err != nil {
		return fmt.Errorf("electing by Lease %s: %w", lock.Describe(), err)
	}
	defer context.AfterFunc(ctx, func() { lock.unlessLeading(func() { end(nil) }) })()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer endStandby()
	watching.Go(func() { config.watchLease(standby, lock.tryNow) })

	for !lock.leading && leaseCtx.Err() == nil {
		attempt, endAttempt := context.WithCancel(leaseCtx)
		lock.unlessLeading(func() { lock.endAttempt = endAttempt })
		// The lock logs failures. The elector would log a stop as one, too.
		elector.Run(klog.NewContext(attempt, klog.Logger{}))
		endAttempt()
	}
	if !lock.leading {
		return nil
	}
	end(ErrLost) // unless it has ended otherwise, the elector has given up
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
					return // given back, and free for a moment
				}
				logger.Info("The Lease has a new holder", "lease", lock.Describe(), "holder", identity, "self", identity == c.Identity)
			},
		},
		// The elector would give the Lease back while the work goes on, and even if
		// another replica holds it by then.
		ReleaseOnCancel: false,
	})
	if err == nil && c.Watchdog != nil {
		c.Watchdog.SetLeaderElection(elector)
	}
	return elector, err
}

// ReleaseTimeout bounds how long Run takes to give the Lease back.
const ReleaseTimeout = 5 * time.Second

// release gives the Lease back if it is still ours, so that no other replica has to wait
// until it expires.
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
		logger.Error(err, "Giving back the Lease failed: another replica has to wait until it expires", "lease", lock.Describe())
		return
	}
	logger.Info("Gave back the Lease", "lease", lock.Describe())
}
