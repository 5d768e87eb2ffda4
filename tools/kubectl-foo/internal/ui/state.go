// SPDX-License-Identifier: Apache-2.0

// What the page shows: each request reads it from the cluster.

package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

// readTimeout limits the time that a request takes.
const readTimeout = 10 * time.Second

// Options define what the page shows.
type Options struct {
	Cluster *cluster.Cluster
	Kinds   cluster.Kinds
	// Lease is the name of the controller's Lease.
	Lease cache.ObjectName
	// Audit is the API server's audit log to follow, or "". Its pictures call the user You "you".
	Audit, You string
}

// page reads what the page shows.
type page struct {
	Options

	// mu guards what the requests have read of the audit log.
	mu    sync.Mutex
	audit audit.Log
	log   timeline.Log
}

// stateView is everything on the page.
type stateView struct {
	// Namespace is "" for all.
	Namespace  string             `json:"namespace"`
	Controller explain.Controller `json:"controller"`
	// Problem is why the page may be incomplete, or "".
	Problem string    `json:"problem"`
	Items   []rowView `json:"items"`
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

// detailView has everything about one Foo, or an Error.
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
func (p *page) state(ctx context.Context, selected cache.ObjectName) (*stateView, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s := &explain.Subject{Lease: p.Cluster.Lease(ctx, p.Lease), Now: time.Now()}
	view := &stateView{Namespace: p.Cluster.Namespace, Controller: s.Controller(), Items: []rowView{}}
	for _, kind := range p.Kinds {
		owners, err := p.Cluster.ListOwners(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		for _, owner := range owners {
			view.Items = append(view.Items, p.row(kind, owner))
		}
	}
	if p.Audit != "" {
		if err := p.readLog(); err != nil {
			view.Problem = fmt.Sprintf("the audit log: %v", err)
		}
	}
	if selected.Name != "" {
		view.Detail = &detailView{rowView: rowView{Namespace: selected.Namespace, Name: selected.Name}}
		if err := p.addDetail(ctx, s, view.Detail, selected); err != nil {
			view.Detail.Error = err.Error()
		}
	}
	return view, nil
}

// readLog reads the new part of the audit log. Lines that are not events are skipped, and cause an
// error.
func (p *page) readLog() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh, err := p.audit.Next()
	for _, write := range fresh {
		p.log.Add(write)
	}
	return err
}

func (p *page) row(kind *plan.Kind, owner plan.Owner) rowView {
	row := rowView{
		Namespace: owner.GetNamespace(), Name: p.Kinds.Argument(kind, owner.GetName()),
		Age: duration.HumanDuration(time.Since(owner.GetCreationTimestamp().Time)),
	}
	if condition := meta.FindStatusCondition(owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
		row.Status, row.Reason = string(condition.Status), condition.Reason
	}
	return row
}

// addDetail adds the details of a Foo, whose name may contain its kind.
func (p *page) addDetail(ctx context.Context, s *explain.Subject, view *detailView, selected cache.ObjectName) (err error) {
	kind, name, err := p.Kinds.Parse(selected.Name)
	if err != nil {
		return err
	}
	if err := s.Read(ctx, p.Cluster.In(selected.Namespace), kind, name); err != nil {
		return err
	}
	if view.Why, err = explain.Of(s); err != nil {
		return err
	}
	view.rowView, view.Before = p.row(kind, s.Owner), report.Ready(s.Owner)
	if view.Why.Next.Status != nil {
		view.After = report.Ready(view.Why.Next.Sync.After)
	}
	var text bytes.Buffer
	if err := p.draw(&text, selected, (*timeline.Timeline).WriteText); err != nil {
		view.NoTimeline = err.Error()
	}
	view.Timeline = text.String()
	return nil
}

// errNoLog explains how to get a timeline.
var errNoLog = errors.New("a timeline needs the API server's audit log, because objects don't show who wrote what: start kubectl foo ui " +
	"with --audit FILE, where FILE is the value of the API server's flag --audit-log-path; the log's level must be Metadata or higher")

// draw writes the timeline of a Foo.
func (p *page) draw(w io.Writer, foo cache.ObjectName, write func(*timeline.Timeline, io.Writer) error) error {
	if p.Audit == "" {
		return errNoLog
	}
	kind, name, err := p.Kinds.Parse(foo.Name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	drawn, err := p.log.Of(kind, foo.Namespace, name)
	if err != nil {
		return fmt.Errorf("the audit log contains nothing about it: %w", err)
	}
	return write(drawn, w)
}
