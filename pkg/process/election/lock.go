// SPDX-License-Identifier: Apache-2.0

// The calls that the elector makes, and the standby's watch.

package election

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// lock gives the elector access to the Lease. It bounds and logs each call, and notices at
// once if the Lease is lost.
type lock struct {
	resourcelock.Interface
	config *Config
	logger klog.Logger
	// lost is called when the Lease, after this replica held it, has another holder or could
	// not be renewed for RenewDeadline; expiry makes the latter call. The elector would keep
	// trying.
	lost   func()
	expiry *time.Timer
	// turn is full during a write and in unlessLeading, so that nothing ends an attempt
	// that is acquiring the Lease. leading and endAttempt change only while it is full.
	turn       chan struct{}
	leading    bool // this replica has held the Lease
	endAttempt context.CancelFunc
}

func (c *Config) newLock(logger klog.Logger, lost func()) *lock {
	l := &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
			Client:     c.Client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity, EventRecorder: c.Recorder},
		},
		config: c, logger: logger, lost: lost, expiry: time.AfterFunc(c.RenewDeadline, lost),
		turn: make(chan struct{}, 1), endAttempt: func() {},
	}
	l.expiry.Stop() // until this replica holds the Lease
	return l
}

// Get reads the Lease.
func (l *lock) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.call(ctx, "Reading", func(ctx context.Context) error {
		record, raw, err = l.Interface.Get(ctx)
		return err
	})
	if err == nil && l.leading && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.lost()
	}
	return record, raw, err
}

// Create creates the Lease and thereby acquires it.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "Creating", func(ctx context.Context) error { return l.Interface.Create(ctx, record) })
}

// Update acquires or renews the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "Updating", func(ctx context.Context) error { return l.Interface.Update(ctx, record) })
}

func (l *lock) write(ctx context.Context, doing string, send func(context.Context) error) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	began := time.Now()
	err := l.call(ctx, doing, send)
	if err == nil {
		l.leading = true
		l.expiry.Reset(l.config.RenewDeadline - time.Since(began))
	}
	return err
}

// call bounds a call, so that a call that hangs leaves time for another before the Lease is
// lost. It logs failures, but not cancellations, and only at -v=2 that another replica was
// quicker.
func (l *lock) call(ctx context.Context, doing string, send func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, l.config.RenewDeadline/2)
	defer cancel()
	err := send(bounded)
	switch {
	case err == nil, ctx.Err() != nil, apierrors.IsNotFound(err) && doing == "Reading":
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		l.logger.V(2).Info("Another replica was quicker", "lease", l.Describe(), "err", err)
	default:
		l.logger.Error(err, doing+" the Lease failed", "lease", l.Describe(), "leading", l.leading, "retryAfter", l.config.RetryPeriod)
	}
	return err
}

// tryNow makes a standby read the Lease at once, as the elector does when it starts running.
// Between two attempts the elector waits 1 to 2.2 RetryPeriods.
func (l *lock) tryNow() { l.unlessLeading(func() { l.endAttempt() }) }

// unlessLeading calls f unless the Lease has been acquired. It waits for a write in progress,
// which may acquire the Lease.
func (l *lock) unlessLeading(f func()) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if !l.leading {
		f()
	}
}

// watchLease calls tryNow when the Lease has changed, and when it has expired for lack of
// changes. The elector's next attempt finds what the watch misses. It also finds a deletion,
// which the watch ignores to give a leader time to recreate the Lease.
func (c *Config) watchLease(ctx context.Context, tryNow func()) {
	// The elector counts from when it has read the Lease, shortly after the event.
	lasts := c.LeaseDuration + c.RetryPeriod/4
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		watcher, err := c.Client.Leases(c.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.Name).String(),
		})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Watching the Lease failed; taking over may take a few seconds longer",
				"lease", klog.KRef(c.Namespace, c.Name), "err", err)
			return
		}
		defer watcher.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-watcher.ResultChan():
				if !open {
					return
				}
				if event.Type == watch.Deleted {
					continue
				}
			case <-time.After(lasts):
			}
			tryNow()
		}
	}, c.RetryPeriod)
}
