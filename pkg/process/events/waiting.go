// SPDX-License-Identifier: Apache-2.0

// The Events that wait: which is written next.

package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// object identifies the object of an Event, without its version.
type object struct{ kind, namespace, name string }

func objectOf(event *corev1.Event) object {
	about := event.InvolvedObject
	return object{about.Kind, about.Namespace, about.Name}
}

// namespace has the Events of a namespace.
type namespace struct {
	objects map[object]*objectEvents
	// ready are the objects with Events of which none is being written, and count is the number
	// of all Events that are not being written.
	ready []*objectEvents
	count int
	// hanging is the number of writes that hang, and notBefore is when to try the next Event,
	// because the last could not be written.
	hanging   int
	notBefore time.Time
}

// objectEvents are the Events about one object. They are written in order, because they may only
// raise the count of the first.
type objectEvents struct {
	object
	*namespace
	events []*corev1.Event // oldest first
	// first is the one that is being written: only its writer reads it without the lock.
	first *corev1.Event
	// attempts counts how often the first was sent, as its correlation says.
	attempts   int
	correlated *record.EventCorrelateResult
	// isWritten is true while the first is being written, and hangs after hangsAfter.
	isWritten, hangs bool
}

func (r *Recorder) enqueue(event *corev1.Event) {
	about := objectOf(event)
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.namespaces[about.namespace]
	if n == nil {
		n = &namespace{objects: map[object]*objectEvents{}}
		r.namespaces[about.namespace] = n
	}
	if r.count >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Dropping Events because too many are waiting", "waiting", capacity)
		}
		if r.dropped++; !r.dropOf(n) {
			return
		}
	}
	of := n.objects[about]
	if of == nil {
		of = &objectEvents{object: about, namespace: n}
		n.objects[about] = of
		n.ready = append(n.ready, of)
	}
	of.events = append(of.events, event)
	r.add(n, 1)
	r.changed.Signal()
}

// add counts Events that are not being written.
func (r *Recorder) add(n *namespace, events int) {
	n.count += events
	r.count += events
}

// dropOf makes room for an Event of a namespace: it drops one of the namespace with most Events,
// and returns false if that is the same one.
func (r *Recorder) dropOf(n *namespace) bool {
	most := n
	for _, other := range r.namespaces {
		if other.count > most.count && len(other.ready) > 0 {
			most = other
		}
	}
	if most == n {
		return false
	}
	last := most.ready[len(most.ready)-1]
	last.events = last.events[:len(last.events)-1]
	if r.add(most, -1); len(last.events) == 0 {
		most.ready = most.ready[:len(most.ready)-1]
		delete(most.objects, last.object)
	}
	return true
}

// next waits until an Event may be written, and returns its object. It returns nil when ctx is
// done, or when no Event is left while flushing.
func (r *Recorder) next(ctx context.Context) *objectEvents {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil {
		of, wait := r.take(time.Now())
		if of != nil {
			r.writing++
			of.isWritten, of.first = true, of.events[0]
			return of
		}
		if r.count == 0 && r.dropped > 0 {
			r.logger.Info("Wrote all waiting Events after dropping some", "dropped", r.dropped)
			r.dropped = 0
		}
		if r.flushing && r.count+r.writing+r.hanging == 0 {
			break
		}
		if wait > 0 {
			r.recheck.Reset(wait)
		}
		r.changed.Wait()
	}
	return nil
}

// take removes an object whose next Event may be written from those that are ready. If there is
// none, it returns the time after which to call it again, or 0.
func (r *Recorder) take(now time.Time) (of *objectEvents, wait time.Duration) {
	if r.writing >= writers {
		return nil, 0
	}
	for _, n := range r.namespaces {
		if len(n.ready) == 0 || n.hanging > 0 {
			continue
		}
		of, pause := n.ready[0], n.notBefore.Sub(now)
		if pause <= 0 && r.isDeferred(of.events[0]) {
			pause = recheckPeriod
		}
		if pause <= 0 {
			n.ready = n.ready[1:]
			r.add(n, -1)
			return of, 0
		}
		if wait == 0 || pause < wait {
			wait = pause
		}
	}
	return nil, wait
}

// isDeferred reports whether urgent work in its namespace defers an Event.
func (r *Recorder) isDeferred(event *corev1.Event) bool {
	return r.urgent != nil && !r.flushing && time.Since(event.FirstTimestamp.Time) < maxDeferral &&
		r.urgent(event.InvolvedObject.Namespace)
}

// write sends the first Event of an object. If that fails, the namespace pauses, and begins with
// another object.
func (r *Recorder) write(of *objectEvents) {
	timer := time.AfterFunc(hangsAfter, func() { r.hang(of) })
	again := r.send(of)
	timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Signal()
	if of.isWritten = false; of.hangs {
		of.hangs = false
		of.hanging--
		r.hanging--
	} else {
		r.writing--
	}
	if again {
		of.notBefore = time.Now().Add(retryAfter)
		r.add(of.namespace, 1)
	} else {
		of.events, of.attempts, of.correlated = of.events[1:], 0, nil
	}
	if len(of.events) > 0 {
		of.ready = append(of.ready, of)
		return
	}
	if delete(of.objects, of.object); len(of.objects) == 0 {
		delete(r.namespaces, of.object.namespace)
	}
}

// hang makes room for another write while one hangs.
func (r *Recorder) hang(of *objectEvents) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !of.isWritten || of.hangs:
	case r.hanging >= maxHanging:
		time.AfterFunc(hangsAfter, func() { r.hang(of) })
	default:
		of.hangs = true
		of.hanging++
		r.hanging++
		r.writing--
		r.changed.Signal()
	}
}
