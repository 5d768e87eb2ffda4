// SPDX-License-Identifier: Apache-2.0

// What the page gets, as JSON, and which Foos are watched.

package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

// listView has all Foos.
type listView struct {
	// Namespace is "" for all.
	Namespace  string         `json:"namespace"`
	Controller controllerView `json:"controller"`
	// Problems are why the page may be out of date.
	Problems []string  `json:"problems"`
	Items    []rowView `json:"items"`
}

// controllerView says whether a controller runs.
type controllerView struct {
	explain.Finding

	State string `json:"state"`
}

// The states of a controller.
const (
	stateRunning = "running"
	stateStopped = "stopped"
	stateUnknown = "unknown"
)

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
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	Status    string               `json:"status"`
	Reason    string               `json:"reason"`
	Why       *explain.Explanation `json:"why,omitempty"`
	Before    string               `json:"before"` // the condition in words, and as the next sync writes it
	After     string               `json:"after"`
	Diff      string               `json:"diff"` // of the status
	History   historyView          `json:"history"`
	Timeline  timelineView         `json:"timeline"`
	Error     string               `json:"error,omitempty"`
}

// historyView has a Foo's states, the oldest first. Source says where they are from.
type historyView struct {
	Source string      `json:"source"`
	States []stateView `json:"states"`
	Now    string      `json:"now"`
}

// stateView is a state. It begins the seconds At after the first, and lasts Seconds.
type stateView struct {
	At      float64 `json:"at"`
	Seconds float64 `json:"seconds"`
	Since   string  `json:"since"`
	Lasted  string  `json:"lasted"`
	Status  string  `json:"status"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
}

// timelineView describes the picture; the page loads it by its version.
type timelineView struct {
	Version string `json:"version"`
	Text    string `json:"text"`
	// Problem is why there is no picture, or "".
	Problem string `json:"problem"`
}

// noLog says how to get a picture.
const noLog = "The lanes are drawn from the API server's audit log: start kubectl foo ui with --audit FILE, where FILE is what " +
	"the API server's flag --audit-log-path names, at the level Metadata or more. Watches don't say who wrote what."

func (l *Live) list() *listView {
	now := l.Now()
	view := &listView{Namespace: l.Cluster.Namespace, Controller: l.controller(), Problems: l.problems(), Items: []rowView{}}
	for _, foo := range sorted[*samplev1alpha1.Foo](l.foos.GetIndexer().List()) {
		row := rowView{Namespace: foo.Namespace, Name: foo.Name, Age: duration.HumanDuration(now.Sub(foo.CreationTimestamp.Time))}
		row.Status, row.Reason = readiness(foo)
		view.Items = append(view.Items, row)
	}
	return view
}

func readiness(foo *samplev1alpha1.Foo) (status, reason string) {
	if condition := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady); condition != nil {
		return string(condition.Status), condition.Reason
	}
	return "", ""
}

func (l *Live) controller() controllerView {
	s := l.subject("", "")
	view := controllerView{s.Controller(), stateRunning}
	switch {
	case s.LeaseErr != nil:
		view.State = stateUnknown
	case view.Advice != "":
		view.State = stateStopped
	}
	return view
}

func (l *Live) detail(name cache.ObjectName) *detailView {
	view := &detailView{Namespace: name.Namespace, Name: name.Name}
	s := l.subject(name.Namespace, name.Name)
	if s.Foo == nil {
		return view
	}
	why, err := explain.Of(s)
	if err != nil {
		view.Error = err.Error()
		return view
	}
	view.Why, view.Before = why, report.Ready(s.Foo.Status)
	view.Status, view.Reason = readiness(s.Foo)
	if after := why.Next.Status; after != nil {
		view.After = report.Ready(*after)
		if view.Diff, err = report.StatusDiff(s.Foo.Status, *after); err != nil {
			view.Error = err.Error()
		}
	}
	view.History = l.historyOf(s.Foo)
	view.Timeline = l.timelineOf(name)
	return view
}

func (l *Live) historyOf(foo *samplev1alpha1.Foo) historyView {
	now := l.Now()
	states, isLogged := l.history.of(foo.UID)
	view := historyView{Source: "as this command has seen it, since it was started", States: []stateView{}, Now: clock(now, now)}
	if isLogged {
		view.Source = "from the audit log"
	}
	for i, s := range states {
		until := now
		if i+1 < len(states) {
			until = states[i+1].since
		}
		lasted := max(0, until.Sub(s.since))
		view.States = append(view.States, stateView{
			At: s.since.Sub(states[0].since).Seconds(), Seconds: lasted.Seconds(),
			Since: clock(s.since, now), Lasted: lastedText(lasted), Status: s.status, Reason: s.reason, Message: s.message,
		})
	}
	return view
}

// clock returns a time of day, with the date if it is not today.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

func lastedText(lasted time.Duration) string {
	if lasted < time.Second {
		return fmt.Sprintf("%d ms", lasted.Milliseconds())
	}
	return duration.HumanDuration(lasted)
}

func (l *Live) timelineOf(name cache.ObjectName) timelineView {
	if l.writes == nil {
		return timelineView{Problem: noLog}
	}
	drawn := l.writes.draw(name)
	if drawn.err != nil {
		return timelineView{Problem: fmt.Sprintf("The audit log has nothing about it: %v.", drawn.err)}
	}
	return timelineView{Version: drawn.version, Text: string(drawn.text)}
}

// watched is an informer that remembers why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer

	resource schema.GroupResource

	mu sync.Mutex
	// err is the last error, and version the resourceVersion that was read before it. A
	// later version means that the error is over.
	err     error
	version string
}

// newWatched returns a watched resource, which calls changed after each change or error.
func newWatched(resource schema.GroupResource, informer cache.SharedIndexInformer, changed func()) (*watched, error) {
	w := &watched{SharedIndexInformer: informer, resource: resource}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if w.failed(err) {
			changed()
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return w, err
}

// failed remembers an error, unless it is one after which the informer goes on at once.
func (w *watched) failed(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.version = cluster.Describe(err, "list and watch", w.resource.String()), w.LastSyncResourceVersion()
	return true
}

// problem returns why the resource can't be read at present, or nil.
func (w *watched) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && w.LastSyncResourceVersion() == w.version {
		return w.err
	}
	return nil
}

// isDecided reports whether the resource has been read, or can't be.
func (w *watched) isDecided() bool { return w.HasSynced() || w.problem() != nil }

// in returns the objects of a namespace in the order of their names, as a list from the
// API server has them.
func in[T preview.Object](w *watched, namespace string) []T {
	objects, err := w.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // all informers of factories have this index
	}
	return sorted[T](objects)
}

// sorted returns objects in the order of their namespaces and names.
func sorted[T preview.Object](objects []any) []T {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		if object, ok := object.(T); ok {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return all
}
