// SPDX-License-Identifier: Apache-2.0

// A controller's connection to the API server, where most faults happen.

package reconciletest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
	"example.com/sample-controller/pkg/reconcile/reconciletest/wire"
)

// errCrashed is the error of all calls of a controller that has crashed. A real
// controller would get no answer.
var errCrashed = fmt.Errorf("the controller has crashed: %w", context.Canceled)

// connection connects one controller to the API server, from its start to its crash.
type connection struct {
	cluster *cluster
	name    string
	// lag is by how much its events are later than those of the first controller.
	lag time.Duration
	// ctx ends with the controller.
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	dead bool
	// heldUntil is the time at which the watches of a kind deliver again.
	heldUntil map[*rows.Kind]time.Time
	// listedAsOf is the version at which the first list of a kind is answered.
	listedAsOf map[*rows.Kind]int
	// relists holds, for each kind of which an event was dropped, when the watch ends because
	// of that. The cache lacks the event until the next list.
	relists map[*rows.Kind]time.Time
	// stale is true if the cache is or was stale because of a fault. Then the controller
	// may recreate an object that it deleted, or repeat a write.
	stale bool
	// lossy is true if the cache lacks an event, although it has later ones.
	lossy bool
	// pendingEvents counts, for each owner, the transitions of Ready that have no event
	// yet.
	pendingEvents map[types.UID]int
	// transitions holds the last transition of each owner that this controller stored.
	transitions map[types.UID]readiness
	// overtaken counts, for each owner, the transitions whose answer was lost, and which
	// another controller had overwritten when this one learned that.
	overtaken map[types.UID]int
	// own holds the last write of each object for which the controller got an answer.
	own map[objectID]ownWrite
	// unanswered holds the conditions Ready of status writes that may or may not have
	// been stored.
	unanswered []readiness
}

// ownWrite is a write of a controller.
type ownWrite struct {
	uid     types.UID
	version string
	owners  []metav1.OwnerReference
	at      time.Time
}

// request is one call. A fault decides whether and when it is committed, and how it is
// answered.
type request struct {
	*wire.Request

	point injectionPoint
	conn  *connection
}

// Do answers a request, with the fault that is injected there, if any.
func (c *connection) Do(sent *wire.Request) (any, error) {
	isRead := sent.Verb == "list" || sent.Verb == "watch"
	switch {
	case sent.Kind == nil && isRead && slices.ContainsFunc(c.cluster.owner.NoObjects, func(r schema.GroupVersionResource) bool { return r.Resource == sent.Resource }):
		return c.none(sent), nil
	case sent.Kind == nil:
		c.cluster.violationf("%s: the controller uses the resource %q, of which the tests know nothing: add a row, or name it in NoObjects", c.cluster.test, sent.Resource)
		return nil, apierrors.NewNotFound(corev1.Resource(sent.Resource), sent.Name)
	}
	id := objectID{sent.Kind, sent.Name}
	if sent.Selector != "" {
		c.cluster.violationf("%s: the simulation has no selectors, such as %s of %s", c.cluster.test, sent.Selector, id)
	}
	switch sent.Action() {
	case "get", "list", "watch", "create", "update", "update-status", "delete":
	case "patch", "patch-status":
		// The update that the patch amounts to. Its UID and resourceVersion keep it from being
		// carried out on another object than the one that it was made from.
		stored, err := c.cluster.api.get(id)
		if err != nil {
			return nil, err
		}
		if sent.Sent, err = rows.Patched(stored, sent.PatchType, sent.Patch); err != nil {
			c.cluster.violationf("%s: the simulation can't carry out a %s of %s: %v", c.cluster.test, sent.Verb, id, err)
			return nil, apierrors.NewBadRequest(err.Error())
		}
		sent.Verb = "update"
	default:
		c.cluster.violationf("%s: the simulation has no %s of %s", c.cluster.test, sent.Verb, id)
		return nil, apierrors.NewMethodNotSupported(sent.Kind.Resource.GroupResource(), sent.Verb)
	}
	if c.ctx.Err() != nil {
		return nil, errCrashed
	}
	if wrong := rules.WrongRequest(sent.Verb, sent.Sent, sent.Patch); wrong != "" {
		c.cluster.violationf("%s sent %s of %s, %s", c.name, sent.Action(), id, wrong)
	}
	point, f := c.cluster.reach(sent.Action(), id)
	r, call := &request{sent, point, c}, (*request).commit
	if f.call != nil {
		c.cluster.tracef("%s: %s meets %q", c.name, point, f.name)
		call = f.call
	}
	answer, err := call(r)
	if f.call != nil {
		c.cluster.tracef("%s: %s returns %s", c.name, point, resultOf(err))
	}
	c.remember(r, answer, err)
	if sent.Verb == "update" {
		c.noteUnanswered(sent.Object(), err)
	}
	return answer, err
}

// none answers a list or a watch of a resource of which there are no objects.
func (c *connection) none(sent *wire.Request) any {
	if sent.Verb == "list" {
		return &wire.List{ResourceVersion: versionText(0)}
	}
	return silence{sent.Ctx}
}

// silence is a watch without events.
type silence struct{ ctx context.Context }

// Next waits for the end of the watch.
func (s silence) Next() (event watch.Event, ok bool) {
	<-s.ctx.Done()
	return event, false
}

// Stop does nothing: the call ends, too.
func (s silence) Stop() {}

// remember notes a write for which the controller got an answer.
func (c *connection) remember(r *request, answer any, err error) {
	object, ok := answer.(rows.Object)
	if err != nil || !ok || r.Verb == "get" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[r.point.id] = ownWrite{object.GetUID(), object.GetResourceVersion(), object.GetOwnerReferences(), time.Now()}
}

// serve executes the request in the API server.
func (r *request) serve(inspect inspector) (any, error) {
	cluster, written := r.conn.cluster, r.Request.Request
	switch r.Verb {
	case "list":
		return r.conn.list(r.Kind), nil
	case "watch":
		return newAPIWatch(r)
	case "get":
		return cluster.api.get(r.point.id)
	case "create", "update":
		admitted, err := cluster.admit(r.Object())
		if err != nil {
			return nil, err
		}
		written.Sent = admitted
	}
	return cluster.api.write(written, inspect)
}

// commit executes the request, unless its controller has crashed.
func (r *request) commit() (any, error) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	if r.conn.dead {
		return nil, errCrashed
	}
	answer, err := r.serve(r.conn.inspect(r.Action()))
	r.conn.inspectRefused(r, err)
	r.conn.cluster.committed(r, err)
	return answer, err
}

// commitLate is like commit, for a request that was in flight so long that its sender may
// have crashed meanwhile and is not responsible for the result.
func (r *request) commitLate() (any, error) {
	r.conn.mu.Lock()
	answer, err := r.serve(r.conn.inspectLate)
	r.conn.mu.Unlock()
	r.conn.cluster.tracef("%s: %s, late -> %s", r.conn.name, r.point, resultOf(err))
	return answer, err
}

// pause waits, and returns false if the call is canceled meanwhile.
func (r *request) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Ctx.Done():
		return false
	}
}

// committed traces the result of a request, and counts refusals.
func (c *cluster) committed(r *request, err error) {
	c.tracef("%s: %s -> %s", r.conn.name, r.point, resultOf(err))
	isProbe := c.owner.Probes && r.Verb == "get" && apierrors.IsNotFound(err)
	if err != nil && !isProbe {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused++
	}
}

func resultOf(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// list answers a list.
func (c *connection) list(kind *rows.Kind) *wire.List {
	version := c.cluster.api.version()
	if asOf, older := c.listedAsOf[kind]; older {
		version = asOf
		delete(c.listedAsOf, kind)
	}
	delete(c.relists, kind)
	answer := &wire.List{ResourceVersion: versionText(version)}
	for _, object := range c.cluster.api.list(kind, version) {
		answer.Items = append(answer.Items, object)
	}
	return answer
}

// hold delays what the watches of a kind deliver.
func (c *connection) hold(kind *rows.Kind, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
	if until := time.Now().Add(d); until.After(c.heldUntil[kind]) {
		c.heldUntil[kind] = until
	}
}

// held returns how much longer a kind's watches are held.
func (c *connection) held(kind *rows.Kind) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.heldUntil[kind])
}

// kill ends a controller at once: later requests are not committed. It reports whether
// the controller had crashed already.
func (c *connection) kill() (was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was = c.dead
	c.dead = true
	c.cancel()
	return was
}

// lagStep is by how much the events of each further controller are later than those of the
// one before, so that two controllers never act at the same time: a run would not repeat.
const lagStep = 20 * time.Millisecond

// latency returns the age of an event of a kind when it arrives. It differs between kinds so that events
// arrive in the same order in each run.
func (c *connection) latency(kind *rows.Kind) time.Duration {
	if kind == c.cluster.owner.Kind { // the first of All
		return c.lag + 200*time.Microsecond
	}
	return c.lag + time.Duration(99+slices.Index(c.cluster.owner.All(), kind))*time.Microsecond
}

// seen returns an object as the controller has it in its cache, or has written it since. Only inspectors may call it.
func (c *connection) seen(id objectID) rows.Object {
	stored := c.cluster.api.objects[id]
	if stored == nil || stored.GetResourceVersion() == c.own[id].version {
		return stored
	}
	for _, change := range slices.Backward(c.cluster.api.history) {
		if change.id == id && time.Since(change.at) >= c.latency(id.kind) {
			return change.object
		}
	}
	return nil
}

// dropped notes that an event was dropped. It is not in the cache until a list.
func (c *connection) dropped(w *apiWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale, c.lossy = true, true
	c.relists[w.Kind] = time.Now().Add(longDelay)
	w.expireAt(c.relists[w.Kind])
}
