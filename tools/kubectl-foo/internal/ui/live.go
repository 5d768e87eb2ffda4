// SPDX-License-Identifier: Apache-2.0

// What the page shows: informers keep it up to date, and each request reads it.

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

// leaseTimeout limits a read of the Lease, and with it the time that a request takes.
const leaseTimeout = 4 * time.Second

// Options define what the page shows.
type Options struct {
	Cluster *cluster.Cluster
	Kinds   cluster.Kinds
	// Lease is the name of the controller's Lease.
	Lease cache.ObjectName
	// Audit is the API server's audit log to follow, or "". Its pictures call the user You "you".
	Audit, You string
}

// live keeps the state of the cluster up to date.
type live struct {
	Options

	watched []*watched
	world   preview.World

	// mu guards what the requests have read of the audit log.
	mu    sync.Mutex
	audit audit.Log
	log   timeline.Log
}

// newLive returns a live that reads nothing before start.
func newLive(o Options) (*live, error) {
	l := &live{Options: o, world: preview.World{}, audit: audit.Log{Path: o.Audit}, log: timeline.Log{You: o.You}}
	for _, resource := range append(o.Kinds.Owners(), o.Kinds.Explaining()...) {
		w := &watched{Resource: resource}
		informer, err := o.Cluster.Informer(resource, w.fail)
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

// start reads everything, and then keeps it up to date until ctx is done.
func (l *live) start(ctx context.Context) error {
	for _, w := range l.watched {
		go w.RunWithContext(ctx)
	}
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

// watched is an informer that records why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer
	cluster.Resource

	failure atomic.Pointer[failure]
}

// failure is an error, and the resourceVersion that was read before it. A later one means that the
// informer has recovered.
type failure struct {
	err  error
	seen string
}

func (w *watched) fail(err error) { w.failure.Store(&failure{err, w.LastSyncResourceVersion()}) }

// problem returns why the resource can't be read at present, or nil.
func (w *watched) problem() error {
	if f := w.failure.Load(); f != nil && f.seen == w.LastSyncResourceVersion() {
		return f.err
	}
	return nil
}

// stateView is everything on the page.
type stateView struct {
	// Namespace is "" for all.
	Namespace  string             `json:"namespace"`
	Controller explain.Controller `json:"controller"`
	// Problems are why the page may be out of date.
	Problems []string  `json:"problems"`
	Items    []rowView `json:"items"`
	// Detail is about the selected Foo, or nil.
	Detail *detailView `json:"detail"`
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

	Why    *explain.Explanation `json:"why,omitempty"`
	Before string               `json:"before"` // the condition in words, and as the next sync writes it
	After  string               `json:"after"`
	// Timeline is the text of the timeline, and NoTimeline why there is none.
	Timeline   string `json:"timeline"`
	NoTimeline string `json:"noTimeline"`
	Error      string `json:"error,omitempty"`
}

// state returns everything on the page, with the details of a Foo unless its name is "".
func (l *live) state(ctx context.Context, selected cache.ObjectName) *stateView {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	s := &explain.Subject{World: l.world, Now: time.Now(), Lease: l.Cluster.Lease(ctx, l.Lease)}
	view := &stateView{Namespace: l.Cluster.Namespace, Controller: s.Controller(), Problems: l.problems(s.Lease), Items: []rowView{}}
	for _, kind := range l.Kinds {
		from := len(view.Items)
		for _, object := range l.world[kind.Resource].List() {
			view.Items = append(view.Items, l.row(kind, object.(plan.Owner))) //nolint:forcetypeassert // objects of the kind
		}
		slices.SortFunc(view.Items[from:], func(a, b rowView) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	if selected.Name != "" {
		view.Detail = l.detail(s, selected)
	}
	return view
}

// problems returns the reasons why the page may be out of date.
func (l *live) problems(lease cluster.Lease) []string {
	problems := []string{}
	if errors.As(lease.Err, new(net.Error)) { // watches take a while to report this
		problems = append(problems, fmt.Sprintf("out of date: the API server does not respond: %v", lease.Err))
	}
	for _, w := range l.watched {
		if err := w.problem(); !w.IsOptional && err != nil {
			problems = append(problems, fmt.Sprintf("out of date: %v", err))
		}
	}
	if l.Audit != "" {
		if err := l.readLog(); err != nil {
			problems = append(problems, fmt.Sprintf("the audit log: %v", err))
		}
	}
	return problems
}

// readLog reads the new part of the audit log. Lines that are not events are skipped, and cause an
// error.
func (l *live) readLog() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, err := l.audit.Next()
	for _, write := range fresh {
		l.log.Add(write)
	}
	return err
}

func (l *live) row(kind *plan.Kind, owner plan.Owner) rowView {
	row := rowView{
		Namespace: owner.GetNamespace(), Name: l.Kinds.Argument(kind, owner.GetName()),
		Age: duration.HumanDuration(time.Since(owner.GetCreationTimestamp().Time)),
	}
	if condition := meta.FindStatusCondition(owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
		row.Status, row.Reason = string(condition.Status), condition.Reason
	}
	return row
}

// detail returns the details of a Foo, whose name may contain its kind.
func (l *live) detail(s *explain.Subject, selected cache.ObjectName) *detailView {
	view := &detailView{rowView: rowView{Namespace: selected.Namespace, Name: selected.Name}}
	kind, name, err := l.Kinds.Parse(selected.Name)
	if err != nil {
		return view
	}
	found, _, _ := l.world[kind.Resource].GetByKey(cache.NewObjectName(selected.Namespace, name).String())
	owner, exists := found.(plan.Owner)
	if !exists {
		return view
	}
	s.Kind, s.Owner = kind, owner
	for _, w := range l.watched {
		if err := w.problem(); w.IsOptional && err != nil {
			s.Missing = append(s.Missing, err)
		}
	}
	why, err := explain.Of(s)
	if err != nil {
		view.Error = err.Error()
		return view
	}
	view.rowView, view.Why, view.Before = l.row(kind, owner), why, report.Ready(owner)
	if why.Next.Status != nil {
		view.After = report.Ready(why.Next.Sync.After)
	}
	var text bytes.Buffer
	if err := l.draw(&text, selected, (*timeline.Timeline).WriteText); err != nil {
		view.NoTimeline = err.Error()
	}
	view.Timeline = text.String()
	return view
}

// errNoLog explains how to get a timeline.
var errNoLog = errors.New("a timeline needs the API server's audit log, because watches don't show who wrote what: start kubectl foo ui " +
	"with --audit FILE, where FILE is the value of the API server's flag --audit-log-path; the log's level must be Metadata or higher")

// draw writes the timeline of a Foo.
func (l *live) draw(w io.Writer, foo cache.ObjectName, write func(*timeline.Timeline, io.Writer) error) error {
	if l.Audit == "" {
		return errNoLog
	}
	kind, name, err := l.Kinds.Parse(foo.Name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	drawn, err := l.log.Of(kind, foo.Namespace, name)
	if err != nil {
		return fmt.Errorf("the audit log contains nothing about it: %w", err)
	}
	return write(drawn, w)
}
