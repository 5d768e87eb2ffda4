// SPDX-License-Identifier: Apache-2.0

// What the page shows, kept up to date by informers.

package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/preview"
)

const (
	// leasePeriod is how often the controller's Lease is read. Ages on the page are as
	// old at most.
	leasePeriod = 5 * time.Second
	// leaseTimeout limits a read of the Lease.
	leaseTimeout = 4 * time.Second
	// auditPeriod is how often the audit log is read.
	auditPeriod = 500 * time.Millisecond
)

// Options say what the page shows.
type Options struct {
	Cluster *cluster.Cluster
	Kinds   cluster.Kinds
	// Lease is the name of the controller's Lease.
	Lease cache.ObjectName
	// Audit is the API server's audit log to follow, or "", and You the user whom its
	// pictures call "you".
	Audit, You string
}

// Live is the state of the cluster, up to date.
type Live struct {
	Options

	watched []*watched
	world   preview.World
	version atomic.Uint64

	mu    sync.Mutex
	lease cluster.Lease
	// lost is why the API server can't be reached since a time, or nil.
	lost  error
	since time.Time
	// log has the writes of the audit log, which logErr says why it can't be read.
	log    timeline.Log
	logErr error
}

// NewLive returns a Live that reads nothing before Start.
func NewLive(o Options) (*Live, error) {
	l := &Live{Options: o, world: preview.World{}, log: timeline.Log{You: o.You}}
	for _, resource := range append(o.Kinds.Owners(), o.Kinds.Explaining()...) {
		w := &watched{Resource: resource}
		informer, err := o.Cluster.Informer(resource, func(err error) { w.told(err); l.version.Add(1) })
		if err != nil {
			return nil, err
		}
		w.SharedIndexInformer, l.world[resource.GroupVersionResource] = informer, informer.GetIndexer()
		l.watched = append(l.watched, w)
	}
	if o.Audit == "" {
		return l, nil
	}
	_, err := os.Stat(o.Audit)
	return l, err
}

// Start reads everything, and then keeps it up to date until ctx is done.
func (l *Live) Start(ctx context.Context) error {
	if l.Audit != "" {
		log := &audit.Log{Path: l.Audit}
		l.readLog(log)
		go wait.UntilWithContext(ctx, func(context.Context) { l.readLog(log) }, auditPeriod)
	}
	for _, w := range l.watched {
		go w.RunWithContext(ctx)
	}
	l.readLease(ctx)
	go wait.UntilWithContext(ctx, l.readLease, leasePeriod)
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		done := true
		for _, w := range l.watched {
			err := w.problem()
			if err != nil && !w.IsOptional {
				return false, err
			}
			done = done && (err != nil || w.HasSynced())
		}
		return done, nil
	})
}

// readLog reads what was written to the audit log since the last call. Lines that are not
// events are skipped, and make an error.
func (l *Live) readLog(log *audit.Log) {
	fresh, err := log.Next()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(fresh) > 0 || (err == nil) != (l.logErr == nil) {
		l.version.Add(1)
	}
	l.logErr = err
	for _, write := range fresh {
		l.log.Add(write)
	}
}

// readLease reads the Lease, and makes the page renew the ages that it shows.
func (l *Live) readLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	l.setLease(l.Cluster.Lease(ctx, l.Lease))
}

func (l *Live) setLease(lease cluster.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = lease
	if isLost := errors.As(lease.Err, new(net.Error)); !isLost {
		l.lost = nil
	} else if l.lost == nil {
		l.lost, l.since = lease.Err, time.Now()
	}
	l.version.Add(1)
}

// subject returns what explains the owner that an argument means. Owner is nil if there is
// none.
func (l *Live) subject(namespace, argument string) *explain.Subject {
	l.mu.Lock()
	s := &explain.Subject{World: l.world, Now: time.Now(), Lease: l.lease}
	l.mu.Unlock()
	kind, name, err := l.Kinds.Parse(argument)
	if err != nil {
		return s
	}
	object, _, _ := l.world[kind.Resource].GetByKey(cache.NewObjectName(namespace, name).String())
	s.Kind = kind
	s.Owner, _ = object.(plan.Owner)
	for _, w := range l.watched {
		if err := w.problem(); w.IsOptional && err != nil {
			s.Missing = append(s.Missing, err)
		}
	}
	return s
}

// problems are why what the page shows may be out of date.
func (l *Live) problems() []string {
	problems := []string{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil { // watches are silent about that for some time
		problems = append(problems, fmt.Sprintf("out of date: the API server does not answer since %s: %v", l.since.Format(time.DateTime), l.lost))
	}
	for _, w := range l.watched {
		if err := w.problem(); !w.IsOptional && err != nil {
			problems = append(problems, fmt.Sprintf("out of date: %v", err))
		}
	}
	if l.logErr != nil {
		problems = append(problems, fmt.Sprintf("the audit log: %v", l.logErr))
	}
	return problems
}

// watched is an informer that remembers why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer
	cluster.Resource

	mu sync.Mutex
	// err is the last error, and seen the resourceVersion that was read before it. A
	// later one means that the error is over.
	err  error
	seen string
}

// told remembers an error.
func (w *watched) told(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.seen = err, w.LastSyncResourceVersion()
}

// problem returns why the resource can't be read at present, or nil.
func (w *watched) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && w.LastSyncResourceVersion() == w.seen {
		return w.err
	}
	return nil
}
