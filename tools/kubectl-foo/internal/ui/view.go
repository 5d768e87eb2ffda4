// SPDX-License-Identifier: Apache-2.0

// What the page gets, as JSON, and the pictures of timelines.

package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/audit"
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

func (l *Live) list() *listView {
	view := &listView{Namespace: l.Cluster.Namespace, Controller: l.subject("", "").Controller(), Problems: l.problems(), Items: []rowView{}}
	for _, kind := range l.Kinds {
		for _, owner := range sorted[plan.Owner](l.byResource[kind.Resource].GetIndexer().List()) {
			view.Items = append(view.Items, l.row(kind, owner))
		}
	}
	return view
}

func (l *Live) row(kind *plan.OwnerKind, owner plan.Owner) rowView {
	row := rowView{
		Namespace: owner.GetNamespace(), Name: l.Kinds.Argument(kind, owner.GetName()),
		Age: duration.HumanDuration(l.Now().Sub(owner.GetCreationTimestamp().Time)),
	}
	if condition := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady); condition != nil {
		row.Status, row.Reason = string(condition.Status), condition.Reason
	}
	return row
}

func (l *Live) detail(name cache.ObjectName) *detailView {
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
	view.Timeline = l.draw(name).timelineView
	return view
}

// auditPeriod is how often the audit log is read.
const auditPeriod = 500 * time.Millisecond

// writes follows an audit log.
type writes struct {
	file audit.Log

	mu    sync.Mutex
	log   timeline.Log
	err   error
	drawn map[cache.ObjectName]*drawing
}

// drawing is a timeline as an SVG.
type drawing struct {
	timelineView

	svg []byte
}

// timelineView describes a picture; the page loads it by its version.
type timelineView struct {
	Version string `json:"version"` // another one if the picture is
	Text    string `json:"text"`
	// Problem is why there is no picture, or "".
	Problem string `json:"problem"`
}

// noLog says how to get a picture.
const noLog = "The lanes are drawn from the API server's audit log: start kubectl foo ui with --audit FILE, where FILE is what " +
	"the API server's flag --audit-log-path names, at the level Metadata or more. Watches don't say who wrote what."

func newWrites(path, you string) (*writes, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return &writes{file: audit.Log{Path: path}, log: timeline.Log{You: you}, drawn: map[cache.ObjectName]*drawing{}}, nil
}

// read reads what was written since the last call, and reports whether the page changes. It
// is not called at the same time by several goroutines. Lines that are not events are
// skipped, and make an error.
func (w *writes) read() (changed bool) {
	fresh, err := w.file.Next()
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = len(fresh) > 0 || (err == nil) != (w.err == nil)
	w.err = err
	for _, write := range fresh {
		w.log.Add(write)
	}
	if len(fresh) > 0 {
		clear(w.drawn)
	}
	return changed
}

// draw draws the timeline of a Foo.
func (l *Live) draw(foo cache.ObjectName) *drawing {
	w := l.writes
	if w == nil {
		return &drawing{timelineView: timelineView{Problem: noLog}}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drawn[foo] == nil {
		drawn, err := l.drawingOf(&w.log, foo)
		if err != nil {
			drawn = &drawing{timelineView: timelineView{Problem: fmt.Sprintf("The audit log has nothing about it: %v.", err)}}
		}
		w.drawn[foo] = drawn
	}
	return w.drawn[foo]
}

func (l *Live) drawingOf(log *timeline.Log, of cache.ObjectName) (*drawing, error) {
	name, err := l.Kinds.First(of.Name)
	if err != nil {
		return nil, err
	}
	picture, err := log.Of(of.Namespace, name)
	if err != nil {
		return nil, err
	}
	var svg, text bytes.Buffer
	if err := errors.Join(picture.WriteSVG(&svg), picture.WriteText(&text)); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(svg.Bytes())
	return &drawing{timelineView{Version: hex.EncodeToString(hash[:8]), Text: text.String()}, svg.Bytes()}, nil
}
