// SPDX-License-Identifier: Apache-2.0

// Watches. They deliver the history of a resource to a controller, event by event, and
// each event is an injection point.

package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
)

// latencies hold the age of an event when it arrives. It differs between resources so
// that events arrive in the same order in each run.
var latencies = func() map[string]time.Duration {
	latencies := map[string]time.Duration{}
	for _, owner := range footest.Owners {
		latencies[owner.Resource.Resource] = 200 * time.Microsecond
		for i, kind := range owner.Kinds {
			latencies[kind.Resource.Resource] = time.Duration(100+i) * time.Microsecond
		}
	}
	return latencies
}()

// apiWatch delivers the changes of one resource to one controller in their order, from a
// version on. As with a real watch, a lost event goes unnoticed until the next list.
type apiWatch struct {
	conn     *connection
	resource string
	version  int
	result   chan watch.Event
	// done ends when the reader stops the watch, expired when the API server ends it.
	done    context.Context
	stop    context.CancelFunc
	expired chan struct{}
	once    sync.Once
}

func newAPIWatch(ctx context.Context, c *connection, resource, resourceVersion string) (*apiWatch, error) {
	version, err := parseVersion(resourceVersion)
	if err != nil {
		return nil, fmt.Errorf("watching %s from version %q: %w", resource, resourceVersion, err)
	}
	w := &apiWatch{conn: c, resource: resource, version: version, result: make(chan watch.Event), expired: make(chan struct{})}
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
			if change.id.resource == w.resource && !w.deliver(change) {
				return
			}
		}
		w.conn.saw(w.resource, w.version)
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
	if !w.wait(func() time.Duration { return time.Until(c.at.Add(w.conn.latency(w.resource))) }) || !w.waitWhileHeld() {
		return false
	}
	// Deliver a copy, because the reader may change it.
	d := &delivery{apiWatch: w, event: watch.Event{Type: c.kind, Object: c.object.DeepCopyObject()}}
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
	w.conn.cluster.tracef("%s: the watch of %s ends with 410 Gone", w.conn.name, w.resource)
	status := apierrors.NewResourceExpired("too old resource version").Status()
	select {
	case w.result <- watch.Event{Type: watch.Error, Object: &status}:
	case <-w.done.Done():
	}
}

func (w *apiWatch) waitWhileHeld() bool {
	return w.wait(func() time.Duration { return w.conn.held(w.resource) })
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
