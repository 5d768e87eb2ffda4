// SPDX-License-Identifier: Apache-2.0

// The simulated cluster: its API server, control plane and controllers, the trace of a
// run, and the violations.

package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
	"example.com/sample-controller/pkg/reconcile/reconciletest/wire"
)

const (
	// settleTime is the time between the steps of a workload. Without faults every
	// reaction to a step ends within it. No sum of usual times of controllers equals it: what happens at
	// one time happens in any order.
	settleTime = 5003 * time.Millisecond
	// longDelay is longer than CallTimeout, and lasts until after the change of the next
	// step. No sum of the controller's own times equals it or shortDelay.
	longDelay = 7300 * time.Millisecond
	// shortDelay is longer than retries take, but shorter than settleTime.
	shortDelay = 1100 * time.Millisecond
	// restartTime is the time between a crash and the next start.
	restartTime = 500 * time.Millisecond
	// endlessCalls is the number of calls and events at which a run ends with a violation. A controller that
	// never pauses takes too little of the bubble's time for a bound on that.
	endlessCalls = 20_000
)

// injectionPoint is a call of a controller, or the arrival of an event, at which a fault
// can happen. n counts points that are otherwise equal, from 1.
type injectionPoint struct {
	verb string
	id   objectID
	n    int
}

func (p injectionPoint) String() string { return fmt.Sprintf("%s %s %d", p.verb, p.id, p.n) }

// cluster is an API server, the cluster's own controllers, and the controllers under
// test. It lives in a testing/synctest bubble.
type cluster struct {
	test    string // its name
	api     *apiServer
	owner   *rows.OwnerRow
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
	trace       []string
	violations  []string
	points      []injectionPoint
	reached     map[injectionPoint]int
	refused     int
	// refusal is the answer to a controller's write of a child until refusedUntil. Until
	// mutatedUntil, what is written is changed.
	refusal                    error
	refusedUntil, mutatedUntil time.Time
	// live counts the controllers that have not crashed.
	live int
	// outside is what calls have made outside the cluster.
	outside sync.Map
	// shared counts the points about the status of owners that were reached while several
	// controllers were at work.
	shared int
	// lastFault is when the last fault was injected.
	lastFault time.Time
	// removed holds, for each child that a controller deleted, the owner's UID and generation
	// at that time.
	removed map[objectID]string
}

func newCluster(test string, owner *rows.OwnerRow, start Start, inject func(injectionPoint) fault) *cluster {
	c := &cluster{
		test: test, api: newAPIServer(), owner: owner, start: start, inject: inject, began: time.Now(),
		reached: map[injectionPoint]int{}, removed: map[objectID]string{},
	}
	c.ctx, c.stop = context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	for _, reference := range owner.References {
		for _, name := range reference.All {
			c.carryOut(model.MustParse(owner, fmt.Sprintf("offer %s/%s", reference.Kind, name)))
		}
	}
	c.running.Go(c.runControlPlane)
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
		cluster: c, heldUntil: map[*rows.Kind]time.Time{}, listedAsOf: map[*rows.Kind]int{}, relists: map[*rows.Kind]time.Time{},
		pendingEvents: map[types.UID]int{}, transitions: map[types.UID]readiness{}, overtaken: map[types.UID]int{}, own: map[objectID]ownWrite{},
	}
	conn.ctx, conn.cancel = context.WithCancel(context.WithValue(c.ctx, connectionKey{}, conn))
	c.mu.Lock()
	c.connections = append(c.connections, conn)
	conn.name = fmt.Sprintf("controller %d", len(c.connections))
	conn.lag = time.Duration(len(c.connections)-1) * lagStep
	c.live++
	c.mu.Unlock()
	for _, change := range prepare {
		change(conn)
	}
	c.tracef("%s starts", conn.name)
	c.running.Go(func() {
		defer conn.cancel()
		err := c.start(conn.ctx, wire.NewClient(c.owner, conn), recorder{conn: conn})
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
	c.mu.Lock()
	c.live--
	c.mu.Unlock()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	point := injectionPoint{verb: verb, id: id}
	c.reached[point]++
	point.n = c.reached[point]
	c.points = append(c.points, point)
	if c.live > 1 && c.isAboutStatus(point) {
		c.shared++
	}
	f := c.inject(point)
	if f.name != "" {
		c.lastFault = time.Now()
	}
	if len(c.points) == endlessCalls {
		c.violations = append(c.violations, fmt.Sprintf("the controllers do not come to rest: %d calls and events, of which the last is %s", endlessCalls, point))
		c.stop()
	}
	return point, f
}

// isAboutStatus reports whether a point is the write of a status, its event, or one of the
// reads that precede the write.
func (c *cluster) isAboutStatus(point injectionPoint) bool {
	return point.verb == "update-status" || point.verb == "get" || point.verb == eventVerb+"modified" && point.id.kind == c.owner.Kind
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

// runControlPlane carries out the duties of the control plane.
func (c *cluster) runControlPlane() {
	for {
		_, more := c.api.next(c.api.version())
		if !c.carryOutDuty() {
			select {
			case <-more:
			case <-c.ctx.Done():
				return
			}
		}
		select {
		case <-time.After(controlPlaneInterval):
		case <-c.ctx.Done():
			return
		}
	}
}

// carryOutDuty makes one write of the control plane, and reports whether one was needed. One
// that fails is repeated, because it stays a duty.
func (c *cluster) carryOutDuty() bool {
	var next model.Duty
	var about rows.Object
	model.Duties(c.world(), func(duty model.Duty, object rows.Object) {
		if about == nil || duty < next {
			next, about = duty, object
		}
	})
	if about == nil {
		return false
	}
	_, err := c.api.write(next.Request(c.owner.KindOf(about), about), noInspection)
	c.tracef("control plane: %s %s -> %s", next, c.idOf(about), resultOf(err))
	return true
}

// world returns all objects, those of a kind by their names.
func (c *cluster) world() rules.World {
	w := rules.World{Owner: c.owner}
	for _, kind := range c.owner.All() {
		w.Objects = append(w.Objects, c.api.list(kind, c.api.version())...)
	}
	return w
}
