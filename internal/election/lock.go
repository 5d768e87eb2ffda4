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
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// pacing is how many tries the elector has in a RetryPeriod. The lock decides
// which of them become calls.
const pacing = 20

// errNotYet is what the elector is told while it has no state of the Lease to
// look at, and it is not yet time to ask for one.
var errNotYet = errors.New("the next look at the Lease is still to come")

// pacedLock is the Lease as the elector sees it.
//
// The elector lets up to 2.2 times its RetryPeriod pass between two tries to
// acquire the Lease, so that it is late to see a renewal, thus late to see an
// expiry, and late to see a Lease given back. So it is made to try more often,
// and this answers most of its questions from memory: the API server is asked
// when there is news, or a RetryPeriod has passed. A leader renews once in a
// RetryPeriod.
type pacedLock struct {
	resourcelock.Interface
	config *Config
	logger klog.Logger
	// acquired is true once the Lease has been ours.
	acquired atomic.Bool
	// taken is called when the Lease, once acquired, bears another's name. The
	// elector would go on trying for RenewDeadline before it gives up.
	taken func()
	// news has something in it when the Lease has changed.
	news chan struct{}

	// The rest belongs to the elector's goroutine.

	// next is done when the next call may be made.
	next *time.Timer
	// record and raw are what the last Get returned, nil if that failed.
	record *resourcelock.LeaderElectionRecord
	raw    []byte
}

func (c *Config) newLock(logger klog.Logger, taken func()) *pacedLock {
	return &pacedLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
			Client:     c.Client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity, EventRecorder: c.Recorder},
		},
		config: c,
		logger: logger,
		taken:  taken,
		news:   make(chan struct{}, 1),
		next:   time.NewTimer(0),
	}
}

// Get returns the Lease, to a standby perhaps as it last was. A write made on
// that is refused if the Lease has changed since.
func (l *pacedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	switch leading := l.acquired.Load(); {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case leading, l.isTime():
	case l.record == nil:
		return nil, nil, errNotYet
	default:
		return l.record, l.raw, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.config.callTimeout())
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	l.record, l.raw = record, raw
	if !apierrors.IsNotFound(err) {
		l.say(ctx, "Reading", err)
	}
	if err == nil && l.acquired.Load() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.taken()
	}
	return record, raw, err
}

// Create makes the Lease, which is then ours.
func (l *pacedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "Creating", record, l.Interface.Create)
}

// Update acquires or renews the Lease.
func (l *pacedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.acquired.Load() {
		select {
		case <-l.next.C:
			l.next.Reset(l.config.RetryPeriod)
		case <-ctx.Done():
		}
		record.RenewTime = metav1.Now() // the elector's is from before the wait
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.write(ctx, "Updating", record, l.Interface.Update)
}

func (l *pacedLock) write(
	ctx context.Context,
	doing string,
	record resourcelock.LeaderElectionRecord,
	call func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.callTimeout())
	defer cancel()
	err := call(ctx, record)
	l.say(ctx, doing, err)
	l.record = nil
	if err == nil {
		l.acquired.Store(true)
	}
	return err
}

// isTime tells whether to ask the API server.
func (l *pacedLock) isTime() bool {
	select {
	case <-l.news:
	case <-l.next.C:
	default:
		return false
	}
	l.next.Reset(l.config.RetryPeriod)
	return true
}

// say tells of a call that failed, if that is worth telling: not if we were
// stopped, and not much if another was quicker.
func (l *pacedLock) say(ctx context.Context, doing string, err error) {
	switch {
	case err == nil, errors.Is(context.Cause(ctx), context.Canceled):
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		l.logger.V(2).Info("Another replica was quicker", "lease", l.Describe(), "err", err)
	default:
		l.logger.Error(err, doing+" the Lease failed", "lease", l.Describe(), "leading", l.acquired.Load(), "retryAfter", l.config.RetryPeriod)
	}
}
