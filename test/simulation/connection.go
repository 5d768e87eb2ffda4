// SPDX-License-Identifier: Apache-2.0

// A controller's connection to the API server, where most faults happen, and controllers
// that dispute because one of them has an old cache.

package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
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
	heldUntil map[*footest.Kind]time.Time
	// listedAsOf is the version at which the first list of a kind is answered.
	listedAsOf map[*footest.Kind]int
	// views holds what the controller has been shown of each kind.
	views map[*footest.Kind]view
	// stale is true if the cache is or was stale because of a fault. Then the controller
	// may recreate an object that it deleted, or repeat a write.
	stale bool
	// lossy is true if the cache lacks an event, although it has later ones.
	lossy bool
	// pendingEvents counts, for each Foo, the transitions of Ready that have no event
	// yet.
	pendingEvents map[types.UID]int
	// transitions holds the last transition of each Foo that this controller stored.
	transitions map[types.UID]readiness
	// overtaken counts, for each Foo, the transitions whose answer was lost, and which
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
	model.Request

	point injectionPoint
	conn  *connection
	ctx   context.Context
	// list is what a list or a watch does, or nil.
	list func()
}

// do sends a request, with the fault that is injected there, if any.
func (c *connection) do(r *request) (footest.Object, error) {
	if c.ctx.Err() != nil {
		return nil, errCrashed
	}
	var f fault
	r.point, f = c.cluster.reach(r.Action(), objectID{r.Kind, r.Name})
	if f.call == nil {
		object, err := r.commit()
		c.remember(r, object, err)
		return object, err
	}
	c.cluster.tracef("%s: %s meets %q", c.name, r.point, f.name)
	object, err := f.call(r)
	c.cluster.tracef("%s: %s returns %s", c.name, r.point, resultOf(err))
	c.remember(r, object, err)
	return object, err
}

// remember notes a write for which the controller got an answer.
func (c *connection) remember(r *request, object footest.Object, err error) {
	if err != nil || object == nil || r.Verb == "get" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[r.point.id] = ownWrite{object.GetUID(), object.GetResourceVersion(), object.GetOwnerReferences(), time.Now()}
}

// serve executes the request in the API server.
func (r *request) serve(inspect inspector) (footest.Object, error) {
	cluster := r.conn.cluster
	switch r.Verb {
	case "list", "watch":
		r.list()
		return nil, nil //nolint:nilnil // the objects and the events are not in the answer
	case "get":
		return cluster.api.get(r.point.id)
	case "delete":
		return cluster.api.write(r.Request, inspect)
	}
	admitted, err := cluster.admit(r.Object())
	if err != nil {
		return nil, err
	}
	written := r.Request
	written.Sent = admitted
	return cluster.api.write(written, inspect)
}

// commit executes the request, unless its controller has crashed.
func (r *request) commit() (footest.Object, error) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	if r.conn.dead {
		return nil, errCrashed
	}
	object, err := r.serve(r.conn.inspect(r.Action()))
	r.conn.inspectRefused(r, err)
	r.conn.cluster.committed(r, err)
	return object, err
}

// commitLate is like commit, for a request that was in flight so long that its sender may
// have crashed meanwhile and is not responsible for the result.
func (r *request) commitLate() (footest.Object, error) {
	r.conn.mu.Lock()
	object, err := r.serve(r.conn.inspectLate)
	r.conn.mu.Unlock()
	r.conn.cluster.tracef("%s: %s, late -> %s", r.conn.name, r.point, resultOf(err))
	return object, err
}

// pause waits, and returns false if the call is canceled meanwhile.
func (r *request) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// committed traces the result of a request, and counts refusals.
func (c *cluster) committed(r *request, err error) {
	c.tracef("%s: %s -> %s", r.conn.name, r.point, resultOf(err))
	if err != nil {
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

func (c *connection) list(ctx context.Context, kind *footest.Kind) (objects []runtime.Object, version int, err error) {
	_, err = c.do(&request{conn: c, ctx: ctx, Request: model.Request{Verb: "list", Kind: kind}, list: func() {
		version = c.cluster.api.version()
		if asOf, older := c.listedAsOf[kind]; older {
			version = asOf
			delete(c.listedAsOf, kind)
		}
		for _, object := range c.cluster.api.list(kind, version) {
			objects = append(objects, object)
		}
		c.views[kind] = view{version: version}
	}})
	return objects, version, err
}

func (c *connection) watch(ctx context.Context, kind *footest.Kind, resourceVersion string) (watch.Interface, error) {
	w, err := newAPIWatch(ctx, c, kind, resourceVersion)
	if err != nil {
		return nil, err
	}
	_, err = c.do(&request{conn: c, ctx: ctx, Request: model.Request{Verb: "watch", Kind: kind}, list: func() {}})
	if err != nil {
		return nil, err
	}
	c.expireWhenDue(w) // the watch before it may have dropped an event, and ended since
	go w.pump()
	return w, nil
}

// hold delays what the watches of a kind deliver.
func (c *connection) hold(kind *footest.Kind, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
	if until := time.Now().Add(d); until.After(c.heldUntil[kind]) {
		c.heldUntil[kind] = until
	}
}

// held returns how much longer a kind's watches are held.
func (c *connection) held(kind *footest.Kind) time.Duration {
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

// view is what a controller has been shown of a kind.
type view struct {
	// version is the last one whose events have been delivered, or that was listed.
	version int
	// relist is when the watch ends because an event was dropped, or zero. The cache lacks
	// the event until the next list.
	relist time.Time
}

// latency returns the age of an event of a kind when it arrives. It differs between kinds so that events
// arrive in the same order in each run.
func (c *connection) latency(kind *footest.Kind) time.Duration {
	if kind == c.cluster.owner.Kind {
		return c.lag + 200*time.Microsecond
	}
	return c.lag + time.Duration(100+slices.Index(c.cluster.owner.Kinds, kind))*time.Microsecond
}

// saw notes that all events of a kind up to a version have been delivered.
func (c *connection) saw(kind *footest.Kind, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.views[kind]
	seen.version = max(seen.version, version)
	c.views[kind] = seen
}

// dropped notes that an event was dropped. It is not in the cache until a list.
func (c *connection) dropped(w *apiWatch) {
	c.mu.Lock()
	c.stale, c.lossy = true, true
	seen := c.views[w.kind]
	seen.relist = time.Now().Add(longDelay)
	c.views[w.kind] = seen
	c.mu.Unlock()
	c.expireWhenDue(w)
}

// expireWhenDue ends a watch with 410 Gone when the list is due that shows a dropped event.
func (c *connection) expireWhenDue(w *apiWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := c.views[w.kind].relist; !due.IsZero() {
		time.AfterFunc(time.Until(due), w.expire)
	}
}

// isBehind reports whether a controller has not been shown a change that should have
// reached it.
func (c *connection) isBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, seen := range c.views {
		latest, at := c.cluster.api.latest(kind)
		if !seen.relist.IsZero() || latest > seen.version && time.Since(at) > c.latency(kind) {
			return true
		}
	}
	return false
}

// isDisputed reports whether two controllers are at work that may not agree, because the
// cache of one is behind. Until it is not, each may replace the status that the other wrote.
func (c *cluster) isDisputed() bool {
	c.mu.Lock()
	connections := slices.Clone(c.connections)
	c.mu.Unlock()
	live := slices.DeleteFunc(connections, (*connection).isDead)
	return len(live) > 1 && slices.ContainsFunc(live, (*connection).isBehind)
}

// isAboutStatus reports whether a point is the write of a status, its event, or one of the
// reads that precede the write.
func (c *cluster) isAboutStatus(point injectionPoint) bool {
	return point.verb == "update-status" || point.verb == "get" || point.verb == eventVerb+"modified" && point.id.kind == c.owner.Kind
}

func (c *connection) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
