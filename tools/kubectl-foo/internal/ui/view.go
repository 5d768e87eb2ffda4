// SPDX-License-Identifier: Apache-2.0

// What the page gets, as JSON, and the pictures of timelines.

package ui

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

// listView has all Foos.
type listView struct {
	// Namespace is "" for all.
	Namespace  string             `json:"namespace"`
	Controller explain.Controller `json:"controller"`
	// Problems are why the page may be out of date.
	Problems []string  `json:"problems"`
	Items    []rowView `json:"items"`
}

// rowView is a row of the list. Status is that of the condition Ready, or "" without it.
type rowView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Age       string `json:"age"`
}

// detailView has all about one Foo. Without Why, there is no such Foo.
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

// Version is another one after each change.
func (l *Live) Version() uint64 { return l.version.Load() }

// List returns what the page shows of all Foos.
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

func (l *Live) row(kind *plan.OwnerKind, owner plan.Owner) rowView {
	row := rowView{
		Namespace: owner.GetNamespace(), Name: l.Kinds.Argument(kind, owner.GetName()),
		Age: duration.HumanDuration(time.Since(owner.GetCreationTimestamp().Time)),
	}
	if condition := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
		row.Status, row.Reason = string(condition.Status), condition.Reason
	}
	return row
}

// Detail returns what the page shows of a Foo.
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

// errNoLog says how to get a picture.
var errNoLog = errors.New("the lanes are drawn from the API server's audit log: start kubectl foo ui with --audit FILE, where FILE is what " +
	"the API server's flag --audit-log-path names, at the level Metadata or more; watches don't say who wrote what")

func (l *Live) draw(foo cache.ObjectName) (*timeline.Timeline, error) {
	if l.Audit == "" {
		return nil, errNoLog
	}
	name, err := l.Kinds.First(foo.Name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	drawn, err := l.log.Of(foo.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("the audit log has nothing about it: %w", err)
	}
	return drawn, nil
}
