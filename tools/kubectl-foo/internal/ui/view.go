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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
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

// view is everything on the page, for its template.
type view struct {
	Token string
	// Namespace is "" for all.
	Namespace  string
	Controller explain.Controller
	// Problem is why the page may be incomplete, or "".
	Problem string
	Items   []*item
	// Detail is about the selected Foo, or nil.
	Detail *detail
}

// item is a Foo in the list. Its name may contain its kind.
type item struct {
	Namespace, Name, Age string
	// Condition is the condition Ready, if there is one.
	Condition  metav1.Condition
	IsSelected bool
}

// detail has everything about one Foo, or an Error.
type detail struct {
	*item

	Why *explain.Explanation
	// Timeline is the text of the timeline, and NoTimeline why there is none.
	Timeline, NoTimeline string
	Error                string
}

// view reads everything on the page, with the details of a Foo unless its name is "".
func (p *page) view(ctx context.Context, selected cache.ObjectName) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s := &explain.Subject{Lease: p.Cluster.Lease(ctx, p.Lease), Now: time.Now()}
	v := &view{Namespace: p.Cluster.Namespace, Controller: s.Controller()}
	if selected.Name != "" {
		v.Detail = &detail{item: &item{Namespace: selected.Namespace, Name: selected.Name}}
	}
	for _, kind := range p.Kinds {
		owners, err := p.Cluster.ListOwners(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		for _, owner := range owners {
			found := &item{Namespace: owner.GetNamespace(), Name: p.Kinds.Argument(kind, owner.GetName()), Age: duration.HumanDuration(time.Since(owner.GetCreationTimestamp().Time))}
			if condition := meta.FindStatusCondition(owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
				found.Condition = *condition
			}
			if found.IsSelected = found.Namespace == selected.Namespace && found.Name == selected.Name; found.IsSelected {
				v.Detail.item = found
			}
			v.Items = append(v.Items, found)
		}
	}
	if p.Audit != "" {
		if err := p.readLog(); err != nil {
			v.Problem = fmt.Sprintf("the audit log: %v", err)
		}
	}
	if v.Detail != nil {
		if err := p.addDetail(ctx, s, v.Detail, selected); err != nil {
			v.Detail.Error = err.Error()
		}
	}
	return v, nil
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

// addDetail adds the details of a Foo, whose name may contain its kind.
func (p *page) addDetail(ctx context.Context, s *explain.Subject, d *detail, selected cache.ObjectName) error {
	kind, name, err := p.Kinds.Parse(selected.Name)
	if err != nil {
		return err
	}
	if err := s.Read(ctx, p.Cluster.In(selected.Namespace), kind, name); err != nil {
		return err
	}
	if d.Why, err = explain.Of(s); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := p.draw(&text, selected, (*timeline.Timeline).WriteText); err != nil {
		d.NoTimeline = err.Error()
	}
	d.Timeline = text.String()
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
