// SPDX-License-Identifier: Apache-2.0

// The API server: objects, resourceVersions, preconditions, the history for old lists, and watches;
// and how the clientsets of a controller see it.

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
	"example.com/sample-controller/test/simulation/wire"
)

// firstVersion is the resourceVersion of an empty history. A real API server never
// returns version 0.
const firstVersion = 1000

// objectID names an object of the namespace, or all of a kind.
type objectID struct {
	kind *footest.Kind
	name string
}

func (id objectID) String() string {
	return strings.TrimSpace(id.kind.Resource.Resource + " " + id.name)
}

func idOf(object footest.Object) objectID { return objectID{footest.KindOf(object), object.GetName()} }

// change records one write to one object.
type change struct {
	kind   watch.EventType
	id     objectID
	object footest.Object
	at     time.Time
}

// inspector inspects a write just before it is committed. stored is the object before the
// write, nil for a create; next is the object after it, nil for a delete.
type inspector func(stored, next footest.Object)

// noInspection is the inspector of writes that are not the controller's.
func noInspection(_, _ footest.Object) {}

// apiServer is an API server of Foos and their children in memory. Unlike a fake clientset
// it keeps its history: a watch begins at a version, and it can lag, end and be resumed;
// a list can be answered from an old version.
//
// An object in the history never changes. Its resourceVersion is firstVersion plus its
// index there, from 1.
type apiServer struct {
	mu      sync.Mutex
	history []change
	objects map[objectID]footest.Object
	// created counts the objects that were created with a name.
	created map[objectID]int
	// changed is closed at the next change.
	changed chan struct{}
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[objectID]footest.Object{}, created: map[objectID]int{}, changed: make(chan struct{})}
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

// latest returns the version and the time of the last change of a kind, or 0.
func (a *apiServer) latest(kind *footest.Kind) (version int, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, change := range slices.Backward(a.history) {
		if change.id.kind == kind {
			return i + 1, change.at
		}
	}
	return 0, time.Time{}
}

func (a *apiServer) get(id objectID) (footest.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok {
		return nil, apierrors.NewNotFound(id.kind.Resource.GroupResource(), id.name)
	}
	return copyOf(stored), nil
}

// list returns the objects of a kind as they were at a version, sorted by name.
func (a *apiServer) list(kind *footest.Kind, version int) []footest.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	present := map[string]footest.Object{}
	for _, change := range a.history[:version] {
		if change.id.kind != kind {
			continue
		}
		present[change.id.name] = copyOf(change.object)
		if change.kind == watch.Deleted {
			delete(present, change.id.name)
		}
	}
	return slices.SortedFunc(maps.Values(present), func(a, b footest.Object) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
}

func (a *apiServer) write(r model.Request, inspect inspector) (footest.Object, error) {
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

// raiseGeneration does what an edit of the spec does that is taken back at once.
func (a *apiServer) raiseGeneration(id objectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.objects[id]
	if !ok || id.kind.Generation == nil {
		return
	}
	next := copyOf(stored)
	next.SetGeneration(next.GetGeneration() + 2)
	a.commit(id, footest.Change{Event: watch.Modified, Object: next})
}

// commit appends a change to the history, and returns the answer.
func (a *apiServer) commit(id objectID, done footest.Change) footest.Object {
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
	return copyOf(done.Answer)
}

// versionText returns the resourceVersion of an index in the history.
func versionText(version int) string { return strconv.Itoa(firstVersion + version) }

// parseVersion is the inverse of versionText.
func parseVersion(resourceVersion string) (int, error) {
	version, err := strconv.Atoi(resourceVersion)
	return version - firstVersion, err
}

// apiWatch delivers the changes of one kind to one controller in their order, from a
// version on. As with a real watch, a lost event goes unnoticed until the next list.
type apiWatch struct {
	conn    *connection
	kind    *footest.Kind
	version int
	result  chan watch.Event
	// done ends when the reader stops the watch, expired when the API server ends it.
	done    context.Context
	stop    context.CancelFunc
	expired chan struct{}
	once    sync.Once
}

func newAPIWatch(ctx context.Context, c *connection, kind *footest.Kind, resourceVersion string) (*apiWatch, error) {
	version, err := parseVersion(resourceVersion)
	if err != nil {
		return nil, fmt.Errorf("watching %ss from version %q: %w", kind, resourceVersion, err)
	}
	w := &apiWatch{conn: c, kind: kind, version: version, result: make(chan watch.Event), expired: make(chan struct{})}
	w.done, w.stop = context.WithCancel(ctx)
	return w, nil
}

// Stop ends the watch for its reader.
func (w *apiWatch) Stop() { w.stop() }

// ResultChan returns the channel of the events.
func (w *apiWatch) ResultChan() <-chan watch.Event { return w.result }

// expire ends the watch with 410 Gone, after which the reader must list again.
func (w *apiWatch) expire() { w.once.Do(func() { close(w.expired) }) }

// delivery is an event that is about to be delivered. A fault may delay, repeat or drop
// it.
type delivery struct {
	*apiWatch

	event watch.Event
}

func (w *apiWatch) pump() {
	defer close(w.result)
	defer w.stop()
	for {
		changes, more := w.conn.cluster.api.next(w.version)
		for _, change := range changes {
			w.version++
			if change.id.kind == w.kind && !w.deliver(change) {
				return
			}
		}
		w.conn.saw(w.kind, w.version)
		select {
		case <-more:
		case <-w.expired:
			w.sendExpired()
			return
		case <-w.done.Done():
			return
		}
	}
}

// deliver returns false if the watch has ended.
func (w *apiWatch) deliver(c change) bool {
	if !w.wait(func() time.Duration { return time.Until(c.at.Add(w.conn.latency(w.kind))) }) || !w.waitWhileHeld() {
		return false
	}
	// Deliver a copy, because the reader may change it.
	d := &delivery{apiWatch: w, event: watch.Event{Type: c.kind, Object: copyOf(c.object)}}
	point, f := w.conn.cluster.reach(eventVerb+strings.ToLower(string(c.kind)), c.id)
	if f.event == nil {
		return d.send()
	}
	w.conn.cluster.tracef("%s: %s meets %q", w.conn.name, point, f.name)
	return f.event(d)
}

func (d *delivery) send() bool { return d.sendCopy(d.event.Object) }

func (d *delivery) sendCopy(object runtime.Object) bool {
	select {
	case d.result <- watch.Event{Type: d.event.Type, Object: object}:
		return true
	case <-d.expired:
		d.sendExpired()
	case <-d.done.Done():
	}
	return false
}

func (w *apiWatch) sendExpired() {
	w.conn.cluster.tracef("%s: the watch of %ss ends with 410 Gone", w.conn.name, w.kind)
	status := apierrors.NewResourceExpired("too old resource version").Status()
	select {
	case w.result <- watch.Event{Type: watch.Error, Object: &status}:
	case <-w.done.Done():
	}
}

func (w *apiWatch) waitWhileHeld() bool {
	return w.wait(func() time.Duration { return w.conn.held(w.kind) })
}

// wait waits until left returns 0 or less. It returns false if the watch ends first.
func (w *apiWatch) wait(left func() time.Duration) bool {
	for left() > 0 {
		select {
		case <-time.After(left()):
		case <-w.expired:
			w.sendExpired()
			return false
		case <-w.done.Done():
			return false
		}
	}
	return w.done.Err() == nil
}

func copyOf(object footest.Object) footest.Object { return object.DeepCopyObject().(footest.Object) }

// server serves a connection.
type server struct{ conn *connection }

// Do answers a request.
func (s server) Do(sent *wire.Request) (runtime.Object, error) {
	kind, err := s.kindOf(sent.Resource, sent.Name)
	if err != nil {
		return nil, err
	}
	r := &request{conn: s.conn, ctx: sent.Ctx, Request: sent.Request}
	switch r.Action() {
	case "get", "create", "update", "update-status", "delete":
	case "patch", "patch-status":
		// The update that the patch amounts to. Its UID and resourceVersion keep it from being
		// carried out on another object than the one that it was made from.
		stored, err := s.conn.cluster.api.get(objectID{kind, sent.Name})
		if err != nil {
			return nil, err
		}
		if r.Sent, err = footest.Patched(stored, sent.PatchType, sent.Patch); err != nil {
			return nil, err
		}
		r.Verb = "update"
	case "list":
		objects, version, err := s.conn.list(sent.Ctx, kind)
		return &wire.List{Items: objects, ResourceVersion: versionText(version)}, err
	default:
		s.conn.cluster.violationf("%s: the simulation has no %s of %s", s.conn.cluster.test, sent.Verb, objectID{kind, sent.Name})
		return nil, apierrors.NewMethodNotSupported(kind.Resource.GroupResource(), sent.Verb)
	}
	stored, err := s.conn.do(r)
	if r.Verb == "update" {
		s.conn.noteUnanswered(r.Object(), err)
	}
	return stored, err
}

// Watch answers a watch.
func (s server) Watch(ctx context.Context, resource, resourceVersion string) (watch.Interface, error) {
	kind, err := s.kindOf(resource, "")
	if err != nil {
		return nil, err
	}
	return s.conn.watch(ctx, kind, resourceVersion)
}

// kindOf returns the kind of a resource, or an error if the tests do not know it.
func (s server) kindOf(resource, name string) (*footest.Kind, error) {
	if kind := footest.Served(resource); kind != nil {
		return kind, nil
	}
	s.conn.cluster.violationf("%s", footest.UnknownResource(resource, s.conn.cluster.test))
	return nil, apierrors.NewNotFound(corev1.Resource(resource), name)
}
