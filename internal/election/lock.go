// SPDX-License-Identifier: Apache-2.0

// The calls that the elector makes, and the watch of a standby.

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

// lock is the Lease as the elector sees it. It bounds and logs each call, and notices at
// once that the Lease is lost.
type lock struct {
	resourcelock.Interface
	config *Config
	logger klog.Logger
	// lost is called when the Lease, once ours, has another's name, or could not be
	// renewed for RenewDeadline: expiry calls it then. The elector would go on trying.
	lost   func()
	expiry *time.Timer
	// turn is full during a write and in unlessLeading, so that nothing ends an attempt
	// that is acquiring the Lease. leading and endAttempt change with it full only.
	turn       chan struct{}
	leading    bool // the Lease has been ours
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
	l.expiry.Stop() // until the Lease is ours
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

// Create makes the Lease, which is then ours.
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

// call bounds a call, so that one that hangs leaves time for another before the Lease is
// lost. It logs a failure, but not that it was canceled, and only at -v=2 that another
// replica was quicker.
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

// tryNow makes a standby read the Lease at once, as the elector does when it starts to
// run. Between two tries it waits for one to 2.2 RetryPeriods.
func (l *lock) tryNow() { l.unlessLeading(func() { l.endAttempt() }) }

// unlessLeading calls f unless the Lease has been acquired. It waits for a write under
// way, which may acquire it.
func (l *lock) unlessLeading(f func()) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if !l.leading {
		f()
	}
}

// watchLease calls tryNow when the Lease has changed, and when it has expired for lack of
// changes. What it misses is found by the elector's next try. So is a deletion, because a
// leader needs time to make the Lease again.
func (c *Config) watchLease(ctx context.Context, tryNow func()) {
	// The Lease lasts from when the elector has read it, shortly after the event.
	lasts := c.LeaseDuration + c.RetryPeriod/4
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		watcher, err := c.Client.Leases(c.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.Name).String(),
		})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Watching the Lease failed: taking over may take some seconds longer",
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
