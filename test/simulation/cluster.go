// SPDX-License-Identifier: Apache-2.0

// The simulated cluster: its API server, control plane and controllers, the trace of a
// run, and the violations.

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/sample-controller/test/footest"
)

const (
	// settleTime is the time between the steps of a workload. Without faults every
	// reaction to a step ends within it.
	settleTime = 5 * time.Second
	// longDelay is longer than CallTimeout, and lasts until after the change of the next
	// step. No sum of the controller's own times equals it or shortDelay: what happens at
	// one time happens in any order.
	longDelay = 7300 * time.Millisecond
	// shortDelay is longer than retries take, but shorter than settleTime.
	shortDelay = 1100 * time.Millisecond
	// restartTime is the time between a crash and the next start.
	restartTime = 500 * time.Millisecond
)

// injectionPoint is a call of a controller, or the arrival of an event, at which a fault
// can happen. n counts points that are otherwise equal, from 1.
type injectionPoint struct {
	verb string
	id   objectID
	n    int
}

func (p injectionPoint) String() string {
	if p.id.name == "" { // a list or a watch
		return fmt.Sprintf("%s %s %d", p.verb, p.id.resource, p.n)
	}
	return fmt.Sprintf("%s %s %d", p.verb, p.id, p.n)
}

// cluster is an API server, the cluster's own controllers, and the controllers under
// test. It lives in a testing/synctest bubble.
type cluster struct {
	test    string // its name
	api     *apiServer
	owner   *footest.OwnerRow
	start   Start
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	// inject chooses the fault, if any, at an injection point.
	inject func(injectionPoint) fault
	began  time.Time
	// stepBegan is the version at which the current step began.
	stepBegan atomic.Int64

	mu          sync.Mutex
	connections []*connection
	admissions  []admission
	trace       []string
	violations  []string
	points      []injectionPoint
	reached     map[injectionPoint]int
	refused     int
	// disputed counts the points about the status of owners that were reached during a
	// dispute.
	disputed int
	// lastFault is when the last fault was injected.
	lastFault time.Time
	// removed holds, for each child that a controller deleted, the Foo's UID and generation
	// at that time.
	removed map[objectID]string
}

func newCluster(test string, owner *footest.OwnerRow, start Start, inject func(injectionPoint) fault) *cluster {
	c := &cluster{
		test: test, api: newAPIServer(), owner: owner, start: start, inject: inject, began: time.Now(),
		reached: map[injectionPoint]int{}, removed: map[objectID]string{},
	}
	c.ctx, c.stop = context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	c.running.Go(func() { controlPlane{c}.run() })
	return c
}

// end stops everything and waits until it has stopped.
func (c *cluster) end() {
	c.stop()
	c.running.Wait()
}

// startController starts a controller that remembers nothing. The functions of prepare
// change its connection first, for example to begin with a stale list.
func (c *cluster) startController(prepare ...func(*connection)) {
	conn := &connection{
		cluster: c, heldUntil: map[string]time.Time{}, listedAsOf: map[string]int{}, views: map[string]view{},
		pendingEvents: map[types.UID]int{}, transitions: map[types.UID]readiness{}, overtaken: map[types.UID]int{}, own: map[objectID]ownWrite{},
	}
	conn.ctx, conn.cancel = context.WithCancel(context.WithValue(c.ctx, connectionKey{}, conn))
	c.mu.Lock()
	c.connections = append(c.connections, conn)
	conn.name = fmt.Sprintf("controller %d", len(c.connections))
	conn.lag = time.Duration(len(c.connections)-1) * lagStep
	c.mu.Unlock()
	for _, change := range prepare {
		change(conn)
	}
	c.tracef("%s starts", conn.name)
	c.running.Go(func() {
		defer conn.cancel()
		err := c.start(conn.ctx, newClients(conn), recorder{conn: conn})
		switch {
		case conn.ctx.Err() == nil:
			c.violationf("%s returned although its context had not ended: %v", conn.name, err)
		case err != nil && !errors.Is(err, context.Canceled):
			c.violationf("%s returned an error: %v", conn.name, err)
		}
	})
}

// crash ends a controller as SIGKILL does, and starts another one after restartTime.
func (c *cluster) crash(conn *connection, prepare ...func(*connection)) {
	if conn.kill() {
		return
	}
	c.tracef("%s crashes", conn.name)
	c.running.Go(func() {
		select {
		case <-time.After(restartTime):
			c.startController(prepare...)
		case <-c.ctx.Done():
		}
	})
}

// reach counts an injection point, and returns it and the fault to inject.
func (c *cluster) reach(verb string, id objectID) (injectionPoint, fault) {
	disputed := c.isDisputed()
	c.mu.Lock()
	defer c.mu.Unlock()
	point := injectionPoint{verb: verb, id: id}
	c.reached[point]++
	point.n = c.reached[point]
	c.points = append(c.points, point)
	if disputed && c.isAboutStatus(point) {
		c.disputed++
	}
	f := c.inject(point)
	if f.name != "" {
		c.lastFault = time.Now()
	}
	return point, f
}

// do carries out a user's step and lets the cluster settle.
func (c *cluster) do(s step) {
	c.tracef("user: %s", s.name)
	c.stepBegan.Store(int64(c.api.version()))
	s.do(c)
	advance(settleTime)
}

// tracef adds a line to the trace, which is printed if the test fails.
func (c *cluster) tracef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace = append(c.trace, fmt.Sprintf("%9.4fs  ", time.Since(c.began).Seconds())+fmt.Sprintf(format, args...))
}

// violationf records that the controller broke a rule.
func (c *cluster) violationf(format string, args ...any) {
	violation := fmt.Sprintf(format, args...)
	c.tracef("!!! %s", violation)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, violation)
}

// connectionKey is the context key of the connection that a controller uses.
type connectionKey struct{}

// traceErrors writes the errors that client-go can't return, such as a failed list, to
// the trace of the controller concerned. client-go's own handlers limit the rate of such
// errors for the whole process, by the time of the last one: after an error in one bubble
// they would wait until that time in another.
func traceErrors(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(ctx context.Context, err error, message string, _ ...any) {
		if conn, ok := ctx.Value(connectionKey{}).(*connection); ok {
			conn.cluster.tracef("%s: %s: %v", conn.name, message, err)
		}
	}}
}

// controlPlaneInterval is the time between two writes of the control plane. In a bubble,
// time passes only while all goroutines wait. So each write takes effect before the next
// one, and each run makes the same calls.
const controlPlaneInterval = 100 * time.Millisecond

// controlPlane is the garbage collector, and the controllers of the children, which only
// write the status.
type controlPlane struct{ *cluster }

func (p controlPlane) run() {
	for {
		_, more := p.api.next(p.api.version())
		if !p.act() {
			select {
			case <-more:
			case <-p.ctx.Done():
				return
			}
		}
		select {
		case <-time.After(controlPlaneInterval):
		case <-p.ctx.Done():
			return
		}
	}
}

// act makes one write, and reports whether one was needed.
func (p controlPlane) act() bool {
	return p.collectGarbage() || p.finishForegroundDeletion() || p.advanceStatuses()
}

// children returns the objects of all kinds of children.
func (c *cluster) children() []footest.Object {
	var children []footest.Object
	for _, kind := range c.owner.Kinds {
		for _, object := range c.api.list(kind.Resource.Resource, c.api.version()) {
			children = append(children, metaOf(object))
		}
	}
	return children
}

// collectGarbage deletes a child whose controlling Foo is deleted or in foreground
// deletion.
func (p controlPlane) collectGarbage() bool {
	for _, child := range p.children() {
		ref := controllerOf(child)
		if ref == nil || isTerminating(child) {
			continue
		}
		if foo := p.foo(ref.Name); foo != nil && foo.GetUID() == ref.UID && !inForegroundDeletion(foo) {
			continue
		}
		return p.wrote("garbage collector", "delete", child,
			p.api.delete(idOf(child), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(child.GetUID()))}, noInspection))
	}
	return false
}

func inForegroundDeletion(foo footest.Object) bool {
	return isTerminating(foo) && slices.Contains(foo.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// finishForegroundDeletion lets a Foo in foreground deletion go when it has no child left.
func (p controlPlane) finishForegroundDeletion() bool {
	for _, object := range p.api.list(p.owner.Resource.Resource, p.api.version()) {
		foo := metaOf(object)
		isChild := func(child footest.Object) bool { return metav1.IsControlledBy(child, foo) }
		if inForegroundDeletion(foo) && !slices.ContainsFunc(p.children(), isChild) {
			foo.SetFinalizers(slices.DeleteFunc(foo.GetFinalizers(), func(finalizer string) bool { return finalizer == metav1.FinalizerDeleteDependents }))
			return p.write("garbage collector", foo, "")
		}
	}
	return false
}

func (p controlPlane) advanceStatuses() bool {
	for _, child := range p.children() {
		if kind := footest.KindOf(child); kind.Advance(child) {
			return p.write(kind.Kind+" controller", child, "status")
		}
	}
	return false
}

// foo returns a Foo, or nil.
func (p controlPlane) foo(name string) footest.Object {
	object, err := p.api.get(p.ownerID(name))
	if err != nil {
		return nil
	}
	return metaOf(object)
}

func (p controlPlane) write(who string, object runtime.Object, subresource string) bool {
	_, err := p.api.update(object, subresource, noInspection)
	return p.wrote(who, "update", object, err)
}

// wrote traces a write. It returns true even if the write failed, because the next act
// repeats it.
func (p controlPlane) wrote(who, verb string, object runtime.Object, err error) bool {
	p.tracef("%s: %s %s -> %s", who, verb, idOf(object), resultOf(err))
	return true
}
