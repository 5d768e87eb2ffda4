// SPDX-License-Identifier: Apache-2.0

// The faults, grouped by the injection points at which they can happen; and the pairs of faults in
// one run: which there are, and which of them are run.

package reconciletest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// fault replaces the normal handling of a call, or of an event that arrives.
type fault struct {
	name string
	call func(*request) (any, error)
	// event returns false if the watch ends.
	event func(*delivery) bool
}

// String returns the name, which rapid prints for a fault that it drew.
func (f fault) String() string { return f.name }

// eventVerb is the prefix of the verbs of injection points that are arrivals of events.
const eventVerb = "event-"

// The names of the faults in which two controllers work at the same time.
const (
	secondController = "second controller from here"
	overtaken        = "second controller while in flight"
)

// faultsAt returns the faults that can happen at an injection point.
func faultsAt(owner *rows.OwnerRow, point injectionPoint) []fault {
	callFaults := slices.Concat(staleFaults(owner), callFaults)
	switch point.verb {
	case "get":
		return callFaults
	case "create", "update":
		return slices.Concat(writeFaults, callFaults, admissionFaults)
	case "update-status", "delete":
		return slices.Concat(writeFaults, callFaults)
	case "list", "watch":
		return informerFaults
	}
	if strings.HasPrefix(point.verb, eventVerb) {
		return eventFaults
	}
	panic("no faults for " + point.verb)
}

var callFaults = []fault{
	crashBefore,
	crashAfter("crash after"),
	tooManyRequests,
	internalError,
	{name: "hang", call: func(r *request) (any, error) {
		<-r.Ctx.Done()
		return nil, r.Ctx.Err()
	}},
	{name: secondController, call: func(r *request) (any, error) {
		r.conn.cluster.startController()
		return r.commit()
	}},
	{name: overtaken, call: func(r *request) (any, error) {
		r.conn.cluster.startController()
		if !r.pause(shortDelay) {
			return nil, r.Ctx.Err()
		}
		return r.commitLate()
	}},
}

// staleFaults returns the faults in which the cache of one resource is stale.
func staleFaults(owner *rows.OwnerRow) []fault {
	var faults []fault
	for _, kind := range owner.All() {
		faults = append(faults,
			crashAfter("crash after, begin with old "+kind.Resource.Resource, beginWithOld(kind)),
			fault{name: "stale " + kind.Resource.Resource + " from here", call: staleFromHere(kind)})
	}
	return faults
}

// writeFaults can happen only to writes.
var writeFaults = []fault{
	{name: "409 Conflict", call: func(r *request) (any, error) {
		return nil, apierrors.NewConflict(r.Kind.Resource.GroupResource(), r.Name, errors.New("the object has been modified"))
	}},
	{name: "timeout although applied", call: func(r *request) (any, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		<-r.Ctx.Done()
		return nil, r.Ctx.Err()
	}},
	{name: "connection lost although applied", call: func(r *request) (any, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		return nil, errors.New("read: connection reset by peer")
	}},
	{name: "applied after the retry", call: appliedLate(shortDelay)},
	{name: "applied after the next step", call: appliedLate(longDelay)},
}

// informerFaults can happen to lists and watches, which have no deadline.
var informerFaults = []fault{
	crashBefore,
	crashAfter("crash after"),
	tooManyRequests,
	internalError,
	{name: "slow", call: func(r *request) (any, error) {
		if !r.pause(shortDelay) {
			return nil, r.Ctx.Err()
		}
		return r.commit()
	}},
}

var eventFaults = []fault{
	{name: "crash", event: func(d *delivery) bool {
		d.conn.cluster.crash(d.conn)
		return false
	}},
	{name: "dropped until a relist", event: func(d *delivery) bool {
		d.conn.dropped(d.apiWatch)
		return true
	}},
	{name: "delivered twice", event: func(d *delivery) bool {
		d.ready = append(d.ready, *d.event.DeepCopy())
		return d.send()
	}},
	{name: "delayed a little", event: heldFor(shortDelay)},
	{name: "delayed past the next step", event: heldFor(longDelay)},
	{name: "watch ends after it", event: func(d *delivery) bool {
		d.send()
		return false
	}},
	{name: "410 Gone instead of it", event: func(d *delivery) bool {
		d.sendExpired()
		return false
	}},
}

var crashBefore = fault{name: "crash before", call: func(r *request) (any, error) {
	r.conn.cluster.crash(r.conn)
	return nil, errCrashed
}}

var tooManyRequests = fault{name: "429 Too Many Requests", call: func(*request) (any, error) {
	return nil, apierrors.NewTooManyRequests("too many requests", 1)
}}

var internalError = fault{name: "500 Internal Server Error", call: func(*request) (any, error) {
	return nil, apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
}}

// crashAfter commits a call, then crashes its controller. prepare changes the connection
// of the next controller.
func crashAfter(name string, prepare ...func(*connection)) fault {
	return fault{name: name, call: func(r *request) (any, error) {
		if _, err := r.commit(); err != nil {
			return nil, err
		}
		r.conn.cluster.crash(r.conn, prepare...)
		return nil, errCrashed
	}}
}

// beginWithOld makes a controller's first list of a kind show the state before the
// current step, like an API server whose own cache lags.
func beginWithOld(kind *rows.Kind) func(*connection) {
	return func(c *connection) {
		c.listedAsOf[kind] = int(c.cluster.stepBegan.Load())
		c.hold(kind, shortDelay)
	}
}

// staleFromHere commits a call and delays the events of a kind until after the next
// step.
func staleFromHere(kind *rows.Kind) func(*request) (any, error) {
	return func(r *request) (any, error) {
		r.conn.hold(kind, longDelay)
		return r.commit()
	}
}

// appliedLate answers a write with a timeout and commits it later, when its sender has
// long retried.
func appliedLate(after time.Duration) func(*request) (any, error) {
	return func(r *request) (any, error) {
		time.AfterFunc(after, func() { _, _ = r.commitLate() })
		return nil, context.DeadlineExceeded
	}
}

func heldFor(d time.Duration) func(*delivery) bool {
	return func(e *delivery) bool {
		e.conn.hold(e.Kind, d)
		return e.waitWhileHeld() && e.send()
	}
}

// shortWorkload is how many times as many pairs as are to be run a workload may have, so
// that all of them are run.
const shortWorkload = 25

var pairsFlag = flag.String("simulation.pairs", "100", fmt.Sprintf(
	"About how `many` pairs of faults to run of each workload, or all. Of a workload that has at most %d times as many, all are run.", shortWorkload))

// injection is a fault at an injection point.
type injection struct {
	point injectionPoint
	fault fault
}

// String returns the name of its test.
func (i injection) String() string { return i.point.String() + "/" + i.fault.name }

// injectionsAt returns each fault that can happen at each of the points.
func injectionsAt(owner *rows.OwnerRow, points []injectionPoint) []injection {
	var all []injection
	for _, point := range points {
		for _, fault := range faultsAt(owner, point) {
			all = append(all, injection{point, fault})
		}
	}
	return all
}

// secondsAfter returns each fault that can happen after a first one, at the points of a run
// with the first alone.
func secondsAfter(owner *rows.OwnerRow, first injection, points []injectionPoint) []injection {
	return injectionsAt(owner, points[slices.Index(points, first.point)+1:])
}

// pairs chooses the pairs of faults that are run, and counts them.
type pairs struct {
	// perWorkload is about how many to run of each workload; 0 means all.
	perWorkload int
	// named is true if the command line names a pair.
	named bool
	// complete holds the workloads all of whose pairs are run.
	complete []string
	// found counts the pairs that begin with a fault that was run alone, ran those that
	// were run, and missed those of them in which the second point was not reached.
	found, ran, missed atomic.Int64
}

// newPairs reads the command line.
func newPairs(t *testing.T) *pairs {
	t.Helper()
	p := &pairs{named: namedLevels() >= 4}
	many, err := strconv.Atoi(*pairsFlag)
	if *pairsFlag != "all" && (err != nil || many < 1) {
		t.Fatalf("-simulation.pairs=%s is neither a number of pairs nor \"all\"", *pairsFlag)
	}
	p.perWorkload = many
	return p
}

// sample holds the pairs of one workload that are run.
type sample struct {
	*pairs
	workload
	baseline

	owner *rows.OwnerRow
	start Start
	// every is n if one pair in n is run.
	every int
}

// sampleOf returns the sample of a workload. Its size follows from the pairs that a second
// fault could make with the points of the run without faults. There are some more, because
// a fault adds points.
func (p *pairs) sampleOf(w workload, b baseline, owner *rows.OwnerRow, start Start) *sample {
	s := &sample{pairs: p, workload: w, baseline: b, owner: owner, start: start, every: 1}
	expected, later := 0, 0
	for _, point := range slices.Backward(b.points) {
		faults := len(faultsAt(owner, point))
		expected += faults * later
		later += faults
	}
	switch {
	case p.named:
	case p.perWorkload == 0, expected <= shortWorkload*p.perWorkload:
		p.complete = append(p.complete, w.name)
	default:
		s.every = expected / p.perWorkload
	}
	return s
}

// of returns the pairs of the sample that begin with a fault: every n-th of those that there
// are. Where it begins depends on nothing but names, so that it is the same in each run.
func (s *sample) of(first injection, seconds []injection) []injection {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s", s.name, first)
	var chosen []injection
	for i := int(hash.Sum32() % uint32(s.every)); i < len(seconds); i += s.every {
		chosen = append(chosen, seconds[i])
	}
	return chosen
}

// runAfter runs the pairs that begin with a fault. points are those of the run with it alone.
func (s *sample) runAfter(t *testing.T, first injection, points []injectionPoint) {
	seconds := secondsAfter(s.owner, first, points)
	s.found.Add(int64(len(seconds)))
	for _, second := range s.of(first, seconds) {
		t.Run(second.String(), func(t *testing.T) {
			s.ran.Add(1)
			c := s.runWithFaults(t, s.owner, s.start, s.baseline, first, second)
			c.report(t)
			if !slices.Contains(c.points, second.point) {
				s.missed.Add(1)
				t.Skipf("%s was not reached", second.point)
			}
		})
	}
}

// report prints what was run. It fails the test if many pairs tested nothing: client-go
// waits for a random time before some retries, but the other times are the same in each run.
func (p *pairs) report(t *testing.T) {
	t.Helper()
	complete := "none"
	if len(p.complete) > 0 && sampling(0) == 1 {
		complete = strings.Join(p.complete, ", ")
	}
	found, ran, missed := p.found.Load(), p.ran.Load(), p.missed.Load()
	fmt.Printf("simulation: %d pairs of faults; %d were run; complete workloads: %s; %d ended before the second fault\n", found, ran, complete, missed)
	if missed > 10+ran/100 {
		t.Errorf("%d of %d pairs ended before the second fault: the runs with the first do not repeat", missed, ran)
	}
}
