// SPDX-License-Identifier: Apache-2.0

// The state that the page shows: informers keep it up to date, and views send it as JSON.

package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

const (
	// leasePeriod is how often the controller's Lease is read, and the ages on the page renewed.
	leasePeriod = 5 * time.Second
	// leaseTimeout limits a read of the Lease.
	leaseTimeout = 4 * time.Second
	// auditPeriod is how often the audit log is read.
	auditPeriod = 500 * time.Millisecond
)

// Options define what the page shows.
type Options struct {
	Cluster *cluster.Cluster
	Kinds   cluster.Kinds
	// Lease is the name of the controller's Lease.
	Lease cache.ObjectName
	// Audit is the API server's audit log to follow, or "". Its pictures call the user You "you".
	Audit, You string
}

// Live keeps the state of the cluster up to date.
type Live struct {
	Options

	watched []*watched
	world   preview.World
	version atomic.Uint64

	mu    sync.Mutex
	lease cluster.Lease
	// lost is why the API server has been unreachable since a time, or nil.
	lost  error
	since time.Time
	// log has the writes in the audit log. logErr is why the log can't be read, or nil.
	log    timeline.Log
	logErr error
}

// NewLive returns a Live that reads nothing before Start.
func NewLive(o Options) (*Live, error) {
	l := &Live{Options: o, world: preview.World{}, log: timeline.Log{You: o.You}}
	for _, resource := range append(o.Kinds.Owners(), o.Kinds.Explaining()...) {
		w := &watched{Resource: resource}
		informer, err := o.Cluster.Informer(resource, func(err error) { w.notify(err); l.version.Add(1) })
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

// readLog reads the new part of the audit log. Lines that are not events are skipped, and cause an
// error.
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

// readLease reads the Lease, and makes the page renew its ages.
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

// subject returns the owner that an argument names, with everything that explains it. Owner is nil
// if it does not exist.
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

// problems returns the reasons why the page may be out of date.
func (l *Live) problems() []string {
	problems := []string{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil { // watches take a while to report this
		problems = append(problems, fmt.Sprintf("out of date: the API server has not responded since %s: %v", l.since.Format(time.DateTime), l.lost))
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

// watched is an informer that records why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer
	cluster.Resource

	mu sync.Mutex
	// err is the last error, and seen the resourceVersion that was read before it. A later
	// one means that the informer has recovered.
	err  error
	seen string
}

// notify records an error.
func (w *watched) notify(err error) {
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

// listView lists all Foos.
type listView struct {
	// Namespace is "" for all.
	Namespace  string             `json:"namespace"`
	Controller explain.Controller `json:"controller"`
	// Problems are why the page may be out of date.
	Problems []string  `json:"problems"`
	Items    []rowView `json:"items"`
}

// rowView is a row of the list. Status is the status of the condition Ready, or "".
type rowView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Age       string `json:"age"`
}

// detailView has everything about one Foo. If Why is nil, the Foo does not exist.
type detailView struct {
	rowView

	Why      *explain.Explanation `json:"why,omitempty"`
	Before   string               `json:"before"` // the condition in words, and as the next sync writes it
	After    string               `json:"after"`
	Timeline timelineView         `json:"timeline"`
	Error    string               `json:"error,omitempty"`
}

// timelineView describes a picture; the page loads it again when the text becomes longer.
type timelineView struct {
	Text string `json:"text"`
	// Problem is why there is no picture, or "".
	Problem string `json:"problem"`
}

// Version changes with each change of the state.
func (l *Live) Version() uint64 { return l.version.Load() }

// List returns a listView.
func (l *Live) List() any {
	view := &listView{Namespace: l.Cluster.Namespace, Controller: l.subject("", "").Controller(), Problems: l.problems(), Items: []rowView{}}
	for _, kind := range l.Kinds {
		from := len(view.Items)
		for _, object := range l.world[kind.Resource].List() {
			view.Items = append(view.Items, l.row(kind, object.(plan.Owner))) //nolint:forcetypeassert // objects of the kind
		}
		slices.SortFunc(view.Items[from:], func(a, b rowView) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	return view
}

func (l *Live) row(kind *plan.Kind, owner plan.Owner) rowView {
	row := rowView{
		Namespace: owner.GetNamespace(), Name: l.Kinds.Argument(kind, owner.GetName()),
		Age: duration.HumanDuration(time.Since(owner.GetCreationTimestamp().Time)),
	}
	if condition := meta.FindStatusCondition(owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
		row.Status, row.Reason = string(condition.Status), condition.Reason
	}
	return row
}

// Detail returns the detailView of a Foo.
func (l *Live) Detail(name cache.ObjectName) any {
	view := &detailView{rowView: rowView{Namespace: name.Namespace, Name: name.Name}}
	s := l.subject(name.Namespace, name.Name)
	if s.Owner == nil {
		return view
	}
	why, err := explain.Of(s)
	if err != nil {
		view.Error = err.Error()
		return view
	}
	view.rowView, view.Why, view.Before = l.row(s.Kind, s.Owner), why, report.Ready(s.Owner)
	if why.Next.Status != nil {
		view.After = report.Ready(why.Next.Sync.After)
	}
	view.Timeline = l.timelineOf(name)
	return view
}

func (l *Live) timelineOf(foo cache.ObjectName) timelineView {
	drawn, err := l.draw(foo)
	var text bytes.Buffer
	if err == nil {
		err = drawn.WriteText(&text)
	}
	if err != nil {
		return timelineView{Problem: err.Error()}
	}
	return timelineView{Text: text.String()}
}

// WriteTimeline writes the picture of a Foo's timeline as SVG.
func (l *Live) WriteTimeline(w io.Writer, foo cache.ObjectName) error {
	drawn, err := l.draw(foo)
	if err != nil {
		return err
	}
	return drawn.WriteSVG(w)
}

// errNoLog explains how to get a picture.
var errNoLog = errors.New("a timeline needs the API server's audit log, because watches don't show who wrote what: start kubectl foo ui " +
	"with --audit FILE, where FILE is the value of the API server's flag --audit-log-path; the log's level must be Metadata or higher")

func (l *Live) draw(foo cache.ObjectName) (*timeline.Timeline, error) {
	if l.Audit == "" {
		return nil, errNoLog
	}
	kind, name, err := l.Kinds.Parse(foo.Name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	drawn, err := l.log.Of(kind, foo.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("the audit log contains nothing about it: %w", err)
	}
	return drawn, nil
}
