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
	// heldUntil is the time at which the watches of a resource deliver again.
	heldUntil map[string]time.Time
	// listedAsOf is the version at which the first list of a resource is answered.
	listedAsOf map[string]int
	// views holds what the controller has been shown of each resource.
	views map[string]view
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
	injectionPoint

	conn  *connection
	ctx   context.Context
	sent  runtime.Object // nil for a call without an object
	apply func(inspector) (runtime.Object, error)
}

// do sends a request, with the fault that is injected there, if any.
func (c *connection) do(ctx context.Context, verb string, id objectID, sent runtime.Object, apply func(inspector) (runtime.Object, error)) (runtime.Object, error) {
	if c.ctx.Err() != nil {
		return nil, errCrashed
	}
	point, f := c.cluster.reach(verb, id)
	r := &request{injectionPoint: point, conn: c, ctx: ctx, sent: sent, apply: apply}
	if f.call == nil {
		object, err := r.commit()
		c.remember(r, object, err)
		return object, err
	}
	c.cluster.tracef("%s: %s meets %q", c.name, point, f.name)
	object, err := f.call(r)
	c.cluster.tracef("%s: %s returns %s", c.name, point, resultOf(err))
	c.remember(r, object, err)
	return object, err
}

// remember notes a write for which the controller got an answer.
func (c *connection) remember(r *request, object runtime.Object, err error) {
	if err != nil || object == nil || r.verb == "get" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	written := metaOf(object)
	c.own[r.id] = ownWrite{written.GetUID(), written.GetResourceVersion(), written.GetOwnerReferences(), time.Now()}
}

// commit executes the request in the API server, unless its controller has crashed.
func (r *request) commit() (runtime.Object, error) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	if r.conn.dead {
		return nil, errCrashed
	}
	object, err := r.apply(r.conn.inspect(r.verb))
	r.conn.inspectRefused(r, err)
	r.conn.cluster.committed(r, err)
	return object, err
}

// commitLate is like commit, for a request that was in flight so long that its sender may
// have crashed meanwhile and is not responsible for the result.
func (r *request) commitLate() (runtime.Object, error) {
	r.conn.mu.Lock()
	object, err := r.apply(r.conn.inspectLate)
	r.conn.mu.Unlock()
	r.conn.cluster.tracef("%s: %s, late -> %s", r.conn.name, r.injectionPoint, resultOf(err))
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
	c.tracef("%s: %s -> %s", r.conn.name, r.injectionPoint, resultOf(err))
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

func (c *connection) get(ctx context.Context, id objectID) (runtime.Object, error) {
	return c.do(ctx, "get", id, nil, func(inspector) (runtime.Object, error) { return c.cluster.api.get(id) })
}

func (c *connection) create(ctx context.Context, object runtime.Object) (runtime.Object, error) {
	return c.do(ctx, "create", idOf(object), object, func(inspect inspector) (runtime.Object, error) {
		admitted, err := c.cluster.admit(object)
		if err != nil {
			return nil, err
		}
		return c.cluster.api.create(admitted, inspect)
	})
}

func (c *connection) update(ctx context.Context, object runtime.Object, subresource string) (runtime.Object, error) {
	verb := "update"
	if subresource != "" {
		verb += "-" + subresource
	}
	stored, err := c.do(ctx, verb, idOf(object), object, func(inspect inspector) (runtime.Object, error) {
		admitted, err := c.cluster.admit(object)
		if err != nil {
			return nil, err
		}
		return c.cluster.api.update(admitted, subresource, inspect)
	})
	c.noteUnanswered(object, err)
	return stored, err
}

func (c *connection) delete(ctx context.Context, id objectID, options metav1.DeleteOptions) error {
	_, err := c.do(ctx, "delete", id, nil, func(inspect inspector) (runtime.Object, error) {
		return nil, c.cluster.api.delete(id, options, inspect)
	})
	return err
}

func (c *connection) list(ctx context.Context, resource string) (objects []runtime.Object, version int, err error) {
	_, err = c.do(ctx, "list", objectID{resource: resource}, nil, func(inspector) (runtime.Object, error) {
		version = c.cluster.api.version()
		if asOf, older := c.listedAsOf[resource]; older {
			version = asOf
			delete(c.listedAsOf, resource)
		}
		objects = c.cluster.api.list(resource, version)
		c.views[resource] = view{version: version}
		return nil, nil
	})
	return objects, version, err
}

func (c *connection) watch(ctx context.Context, resource, resourceVersion string) (watch.Interface, error) {
	w, err := newAPIWatch(ctx, c, resource, resourceVersion)
	if err != nil {
		return nil, err
	}
	_, err = c.do(ctx, "watch", objectID{resource: resource}, nil, func(inspector) (runtime.Object, error) { return nil, nil })
	if err != nil {
		return nil, err
	}
	c.expireWhenDue(w) // the watch before it may have dropped an event, and ended since
	go w.pump()
	return w, nil
}

// hold delays what the watches of a resource deliver.
func (c *connection) hold(resource string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
	if until := time.Now().Add(d); until.After(c.heldUntil[resource]) {
		c.heldUntil[resource] = until
	}
}

// held returns how much longer a resource's watches are held.
func (c *connection) held(resource string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.heldUntil[resource])
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

// view is what a controller has been shown of a resource.
type view struct {
	// version is the last one whose events have been delivered, or that was listed.
	version int
	// relist is when the watch ends because an event was dropped, or zero. The cache lacks
	// the event until the next list.
	relist time.Time
}

// latency returns the age of an event of a resource when it arrives.
func (c *connection) latency(resource string) time.Duration { return latencies[resource] + c.lag }

// saw notes that all events of a resource up to a version have been delivered.
func (c *connection) saw(resource string, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.views[resource]
	seen.version = max(seen.version, version)
	c.views[resource] = seen
}

// dropped notes that an event was dropped. It is not in the cache until a list.
func (c *connection) dropped(w *apiWatch) {
	c.mu.Lock()
	c.stale, c.lossy = true, true
	seen := c.views[w.resource]
	seen.relist = time.Now().Add(longDelay)
	c.views[w.resource] = seen
	c.mu.Unlock()
	c.expireWhenDue(w)
}

// expireWhenDue ends a watch with 410 Gone when the list is due that shows a dropped event.
func (c *connection) expireWhenDue(w *apiWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := c.views[w.resource].relist; !due.IsZero() {
		time.AfterFunc(time.Until(due), w.expire)
	}
}

// isBehind reports whether a controller has not been shown a change that should have
// reached it.
func (c *connection) isBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for resource, seen := range c.views {
		latest, at := c.cluster.api.latest(resource)
		if !seen.relist.IsZero() || latest > seen.version && time.Since(at) > c.latency(resource) {
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
	return point.verb == "update-status" || point.verb == "get" || point.verb == eventVerb+"modified" && point.id.kind() == c.owner.Kind
}

func (c *connection) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
