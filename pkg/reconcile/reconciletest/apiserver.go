// SPDX-License-Identifier: Apache-2.0

// The API server: objects, resourceVersions, preconditions, the history for old lists, watches, and
// webhooks and policies that refuse or change a controller's writes for some time.

package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// firstVersion is the resourceVersion of an empty history. A real API server never
// returns version 0.
const firstVersion = 1000

// objectID names an object of the namespace, or all of a kind.
type objectID struct {
	kind *rows.Kind
	name string
}

func (id objectID) String() string {
	return strings.TrimSpace(id.kind.Resource.Resource + " " + id.name)
}

func (c *cluster) idOf(object rows.Object) objectID {
	return objectID{c.owner.KindOf(object), object.GetName()}
}

// change records one write to one object.
type change struct {
	kind   watch.EventType
	id     objectID
	object rows.Object
	at     time.Time
}

// inspector inspects a write just before it is committed. stored is the object before the
// write, nil for a create; next is the object after it, nil for a delete.
type inspector func(stored, next rows.Object)

// noInspection is the inspector of writes that are not the controller's.
func noInspection(_, _ rows.Object) {}

// apiServer is an API server of owners and their children in memory. Unlike a fake clientset
// it keeps its history: a watch begins at a version, and it can lag, end and be resumed;
// a list can be answered from an old version.
//
// An object in the history never changes. Its resourceVersion is firstVersion plus its
// index there, from 1.
type apiServer struct {
	mu      sync.Mutex
	history []change
	objects map[objectID]rows.Object
	// created counts the objects that were created with a name.
	created map[objectID]int
	// changed is closed at the next change.
	changed chan struct{}
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[objectID]rows.Object{}, created: map[objectID]int{}, changed: make(chan struct{})}
}

// next returns the history after a version, and a channel that is closed at the next
// change.
func (a *apiServer) next(version int) (changes []change, more <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history[version:], a.changed
}

func (a *apiServer) version() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.history)
}

func (a *apiServer) get(id objectID) (rows.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok {
		return nil, apierrors.NewNotFound(id.kind.Resource.GroupResource(), id.name)
	}
	return rows.CopyOf(stored), nil
}

// list returns the objects of a kind as they were at a version, sorted by name.
func (a *apiServer) list(kind *rows.Kind, version int) []rows.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	present := map[string]rows.Object{}
	for _, change := range a.history[:version] {
		if change.id.kind != kind {
			continue
		}
		present[change.id.name] = rows.CopyOf(change.object)
		if change.kind == watch.Deleted {
			delete(present, change.id.name)
		}
	}
	return slices.SortedFunc(maps.Values(present), func(a, b rows.Object) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
}

func (a *apiServer) write(r model.Request, inspect inspector) (rows.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := objectID{r.Kind, r.Name}
	stored := a.objects[id]
	change, err := r.Write(stored, metav1.Now())
	if err != nil {
		return nil, err
	}
	inspect(stored, change.Answer)
	if change.Event == watch.Added {
		a.created[id]++
		// The UID is the same in each run, whatever else differs.
		change.Object.SetUID(types.UID(fmt.Sprintf("%s #%d", id, a.created[id])))
	}
	return a.commit(id, change), nil
}

// touch does what an edit does that is taken back at once: it changes the version, and the generation.
func (a *apiServer) touch(id objectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok {
		return
	}
	next := rows.CopyOf(stored)
	if id.kind.Generation != nil {
		next.SetGeneration(next.GetGeneration() + 2)
	}
	a.commit(id, rows.Change{Event: watch.Modified, Object: next})
}

// commit appends a change to the history, and returns the answer.
func (a *apiServer) commit(id objectID, done rows.Change) rows.Object {
	if done.Event == "" {
		return done.Answer
	}
	done.Object.SetResourceVersion(versionText(len(a.history) + 1))
	a.history = append(a.history, change{done.Event, id, done.Object, time.Now()})
	a.objects[id] = done.Object
	if done.Event == watch.Deleted {
		delete(a.objects, id)
	}
	close(a.changed)
	a.changed = make(chan struct{})
	if done.Answer == nil {
		return nil
	}
	return rows.CopyOf(done.Answer)
}

// versionText returns the resourceVersion of an index in the history.
func versionText(version int) string { return strconv.Itoa(firstVersion + version) }

// apiWatch delivers the changes of one kind to one controller in their order, from a
// version on. As with a real watch, a lost event goes unnoticed until the next list.
type apiWatch struct {
	*request

	version int
	// ready are the events that Next returns before any other. ended is true if it returns
	// no others.
	ready []watch.Event
	ended bool
	// done ends when the reader stops the watch, expired when the API server ends it.
	done    context.Context
	stop    context.CancelFunc
	expired chan struct{}
	once    sync.Once
}

func newAPIWatch(r *request) (*apiWatch, error) {
	version, err := strconv.Atoi(r.ResourceVersion)
	if err != nil {
		return nil, fmt.Errorf("watching %ss from a version: %w", r.Kind, err)
	}
	w := &apiWatch{request: r, version: version - firstVersion, expired: make(chan struct{})}
	w.done, w.stop = context.WithCancel(r.Ctx)
	if due, dropped := r.conn.relists[r.Kind]; dropped { // by a watch that has ended since
		w.expireAt(due)
	}
	return w, nil
}

// Stop ends the watch for its reader.
func (w *apiWatch) Stop() { w.stop() }

// expireAt ends the watch with 410 Gone at a time. Then the reader must list again.
func (w *apiWatch) expireAt(due time.Time) {
	time.AfterFunc(time.Until(due), func() { w.once.Do(func() { close(w.expired) }) })
}

// Next waits for the next event. It is not ok if the watch has ended.
func (w *apiWatch) Next() (event watch.Event, ok bool) {
	for len(w.ready) == 0 {
		if w.ended {
			return watch.Event{}, false
		}
		w.ended = !w.pump()
	}
	event, w.ready = w.ready[0], w.ready[1:]
	return event, true
}

// delivery is an event that is about to be delivered. A fault may delay, repeat or drop
// it.
type delivery struct {
	*apiWatch

	event watch.Event
}

// pump waits for a change, and delivers it if it is one of the kind. It returns false if the
// watch ends after that.
func (w *apiWatch) pump() bool {
	changes, more := w.conn.cluster.api.next(w.version)
	if len(changes) > 0 {
		w.version++
		return changes[0].id.kind != w.Kind || w.deliver(changes[0])
	}
	return await(w, more)
}

// await waits for a channel, and returns false if the watch ends first.
func await[T any](w *apiWatch, due <-chan T) bool {
	select {
	case <-due:
		return true
	case <-w.expired:
		w.sendExpired()
	case <-w.done.Done():
	}
	return false
}

func (w *apiWatch) deliver(c change) bool {
	if !w.wait(func() time.Duration { return time.Until(c.at.Add(w.conn.latency(w.Kind))) }) || !w.waitWhileHeld() {
		return false
	}
	// Deliver a copy, because the reader may change it.
	d := &delivery{apiWatch: w, event: watch.Event{Type: c.kind, Object: rows.CopyOf(c.object)}}
	point, f := w.conn.cluster.reach(eventVerb+strings.ToLower(string(c.kind)), c.id)
	if f.event == nil {
		return d.send()
	}
	w.conn.cluster.tracef("%s: %s meets %q", w.conn.name, point, f.name)
	return f.event(d)
}

func (d *delivery) send() bool {
	d.ready = append(d.ready, d.event)
	return true
}

func (w *apiWatch) sendExpired() {
	w.conn.cluster.tracef("%s: the watch of %ss ends with 410 Gone", w.conn.name, w.Kind)
	status := apierrors.NewResourceExpired("too old resource version").Status()
	w.ready = append(w.ready, watch.Event{Type: watch.Error, Object: &status})
}

func (w *apiWatch) waitWhileHeld() bool {
	return w.wait(func() time.Duration { return w.conn.held(w.Kind) })
}

// wait waits until left returns 0 or less. It returns false if the watch ends first.
func (w *apiWatch) wait(left func() time.Duration) bool {
	for left() > 0 {
		if !await(w, time.After(left())) {
			return false
		}
	}
	return w.done.Err() == nil
}

// admissionFaults last until after the change of the next step.
var admissionFaults = []fault{
	admittedBy("webhook down from here",
		apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.com": connection refused`))),
	admittedBy("429 with Retry-After from here", apierrors.NewTooManyRequests("too many requests, please try again later", 3)),
	admittedBy("webhook denies with 409 from here", model.Denial(http.StatusConflict)),
	admittedBy("webhook denies with 404 from here", model.Denial(http.StatusNotFound)),
	admittedBy("owned fields changed from here", nil),
}

// admittedBy returns the fault in which writes are refused or, without a refusal, changed, from
// this call on.
func admittedBy(name string, refusal error) fault {
	return fault{name: name, call: func(r *request) (any, error) {
		c := r.conn.cluster
		c.mu.Lock()
		if end := time.Now().Add(longDelay); refusal == nil {
			c.mutatedUntil = end
		} else {
			c.refusal, c.refusedUntil = refusal, end
		}
		c.mu.Unlock()
		// The end of a policy causes no event. A user touches the children, so that the
		// controller notices.
		time.AfterFunc(longDelay+time.Millisecond, c.touchChildren)
		return r.commit()
	}}
}

// admit returns the object that the API server stores when a controller sends one.
func (c *cluster) admit(sent rows.Object) (rows.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.owner.KindOf(sent)
	if kind == c.owner.Kind {
		return sent, nil
	}
	if time.Now().Before(c.refusedUntil) {
		return nil, c.refusal
	}
	if !time.Now().Before(c.mutatedUntil) {
		return sent, nil
	}
	changed := rows.CopyOf(sent)
	if ref := metav1.GetControllerOf(changed); ref != nil {
		if foo, err := c.api.get(objectID{c.owner.Kind, ref.Name}); err == nil {
			kind.Drift(changed, foo)
		}
	}
	return changed, nil
}

// mutatesWrites reports whether a policy may undo a controller's writes.
func (c *cluster) mutatesWrites() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.mutatedUntil)
}

// touchChildren touches each child.
func (c *cluster) touchChildren() {
	for _, object := range c.world().Objects {
		if !c.owner.Is(object) && !c.owner.IsReferenced(object) {
			c.api.touch(c.idOf(object))
		}
	}
}
