// SPDX-License-Identifier: Apache-2.0

// Package timeline shows the history of Foos in an audit log, as text and as a picture: who
// wrote what, when, and because of which other write.
//
// A Log collects writes. Log.Of finds the owner of each object (owners.go), selects the writes
// to Foos and to the objects that they own, finds the cause of each write (owners.go), and puts
// each act of a person and all its effects into a panel. picture.go and timeline.tmpl draw the
// panels.
package timeline

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/printable"
)

// Log collects the writes of an audit log, in any order.
type Log struct {
	// You is the user whom the timeline calls "you", or "".
	You string

	entries []Entry
	// background is the number of writes that are not kept.
	background int
	// controllers holds the actors of writes that only controllers make.
	controllers sets.Set[audit.Actor]
}

// Add adds a write, without its bodies, which may be large.
func (l *Log) Add(w audit.Write) {
	if l.controllers == nil {
		l.controllers = sets.New[audit.Actor]()
	}
	if w.Subresource == "status" || w.Resource == "events" || w.Resource == "leases" {
		l.controllers.Insert(audit.ActorOf(w))
	}
	if w.IsBackground() {
		l.background++
		return
	}
	e := Entry{Write: w, Result: noteOf(w), actor: audit.ActorOf(w), owner: ownerIn(w)}
	e.Request, e.Response = nil, nil
	l.entries = append(l.entries, e)
}

// Timeline holds writes to Foos and to the objects that they own.
type Timeline struct {
	Title  string
	Panels []Panel
	// Others is the number of writes in the log that are not in the timeline.
	Others int
}

// Panel is an act of a person and all its effects, in the order in which the API server received
// the requests.
type Panel struct {
	Title   string
	Entries []*Entry
}

// Entry is a write in a timeline. Its texts are safe to print.
type Entry struct {
	audit.Write

	// Panel counts the panels from 1. Since is the time since the panel's first request.
	Panel int
	Since time.Duration

	// Actor made the request. Object is the resource and the name, as in "foos/status web".
	// Result describes in a few words what was written, or why the request was rejected.
	Actor, Object, Result string

	// Cause is the write that caused this one, or nil.
	Cause *Entry

	actor audit.Actor
	// acts is true if the actor is a person, whose writes have no cause in the log.
	acts bool
	// object is the written object, and owner its owner if the log names it.
	object, owner key
}

// errNothing is the error for a log without writes to show.
var errNothing = errors.New("there are no writes to such an object")

// Of returns the timeline of an object of a kind, such as a Foo. An empty namespace or name means
// any.
func (l *Log) Of(kind *plan.Kind, namespace, name string) (*Timeline, error) {
	all := l.ordered()
	owners := ownersOf(kind, all)
	var chosen []*Entry
	for _, e := range all {
		root := owners.root(e)
		wanted := (namespace == "" || root.namespace == namespace) && (name == "" || root.name == name)
		if owners.isRoot(root) && wanted {
			chosen = append(chosen, e)
		}
	}
	t := &Timeline{Title: "The life of " + kind.Name + " " + name, Others: l.background + len(all) - len(chosen)}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w, but %d other writes", errNothing, t.Others)
	}
	owners.findCauses(chosen)
	t.divide(chosen)
	t.describe(chosen)
	return t, nil
}

// ordered returns a copy of all entries in the order in which the server received them.
func (l *Log) ordered() []*Entry {
	all := make([]*Entry, 0, len(l.entries))
	for _, e := range l.entries {
		controls := e.actor.System || l.controllers.Has(e.actor) || strings.Contains(e.actor.Name, "controller")
		e.acts = e.actor.ByHand || !controls
		if e.actor.ByHand && l.You != "" && e.User == l.You {
			e.actor.Name = "you"
		}
		all = append(all, &e)
	}
	slices.SortStableFunc(all, func(a, b *Entry) int { return a.Received.Compare(b.Received) })
	return all
}

// quiet is the time without writes after which a write without a cause starts a panel.
const quiet = 5 * time.Second

// divide puts each entry into the panel of its cause.
func (t *Timeline) divide(entries []*Entry) {
	var last *Entry
	for _, e := range entries {
		switch {
		case e.Cause != nil:
			e.Panel = e.Cause.Panel
		case e.acts || last == nil || e.Received.Sub(last.Received) > quiet:
			t.Panels = append(t.Panels, Panel{})
			e.Panel = len(t.Panels)
		default:
			e.Panel = len(t.Panels)
		}
		last = e
		panel := &t.Panels[e.Panel-1]
		panel.Entries = append(panel.Entries, e)
		e.Since = e.Received.Sub(panel.Entries[0].Received)
	}
}

// describe sets the texts of the entries and the titles.
func (t *Timeline) describe(entries []*Entry) {
	namespaces := sets.New[string]()
	for _, e := range entries {
		namespaces.Insert(e.Namespace)
	}
	for _, e := range entries {
		e.Actor, e.Object = e.actor.Name, e.Path()
		switch {
		case e.Name == "":
		case len(namespaces) > 1:
			e.Object += " " + e.Namespace + "/" + e.Name
		default:
			e.Object += " " + e.Name
		}
		if !e.OK() {
			e.Result = strings.TrimSpace(fmt.Sprint(e.Code, " ", http.StatusText(e.Code)))
		}
		for _, text := range []*string{&e.Actor, &e.Object, &e.Result} {
			*text = printable.Quote(*text)
		}
	}
	if len(namespaces) == 1 {
		t.Title += " in " + entries[0].Namespace
	}
	t.Title = printable.Quote(t.Title)
	for i := range t.Panels {
		first := t.Panels[i].Entries[0]
		t.Panels[i].Title = fmt.Sprintf("%s: %s %s", first.Actor, first.Verb, first.Object)
	}
}

// noteOf describes in a few words the status or the desired state that a write has set.
func noteOf(w audit.Write) string {
	body := w.Response
	if body == nil || body.Kind == "Status" {
		body = w.Request
	}
	if body == nil || w.Deletes() {
		return ""
	}
	if body.Kind == "Binding" {
		return "to " + body.Target.Name
	}
	spec, _ := body.Spec.(map[string]any)
	replicas := spec["replicas"]
	switch {
	case w.Subresource == "status":
		return statusOf(body.Status, replicas)
	case replicas != nil:
		return fmt.Sprintf("replicas %v", replicas)
	}
	return ""
}

// statusOf describes a status: the available replicas or the phase, and whether and why the object
// is ready or not.
func statusOf(status audit.Status, replicas any) string {
	var notes []string
	available, ready := 0, audit.Condition{}
	if status.AvailableReplicas != nil {
		available = *status.AvailableReplicas
	}
	for _, c := range status.Conditions {
		if c.Type == "Ready" {
			ready = c
		}
	}
	switch {
	case replicas != nil:
		notes = append(notes, fmt.Sprintf("%d/%v available", available, replicas))
	case status.AvailableReplicas != nil:
		notes = append(notes, fmt.Sprintf("%d available", available))
	case status.Phase != "" && ready.Status != "True":
		notes = append(notes, status.Phase)
	}
	switch {
	case ready.Status == "True":
		notes = append(notes, "Ready")
	case ready.Reason != "":
		notes = append(notes, ready.Reason)
	}
	return strings.Join(notes, ", ")
}
