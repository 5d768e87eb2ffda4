// SPDX-License-Identifier: Apache-2.0

// Package events records Events and writes them in the background, after more urgent
// work.
//
// client-go's broadcaster queues a thousand Events, drops the rest, and writes them as
// fast as it can. When thousands of objects are reconciled at once, it loses Events, and
// those that it writes compete for the API server with the work that they report. This
// package queues ten thousand Events, and defers them while there is such work, up to a
// limit. client-go's correlator still aggregates repeated Events and limits their rate.
package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// capacity is the number of Events that may wait, at about 1 KiB each.
	capacity = 10_000
	// maxDeferral is how long urgent work may defer an Event.
	maxDeferral = 30 * time.Second
	// recheckPeriod is how often a deferred Event checks whether urgent work remains.
	recheckPeriod = 50 * time.Millisecond
	// writers is the number of Events that are written concurrently. It equals the default
	// number of workers, so that writing the Events takes no longer than the work that
	// they report.
	writers = 2
)

// Recorder queues Events until they are written. It is a record.EventRecorder.
type Recorder struct {
	scheme  *runtime.Scheme
	source  corev1.EventSource
	logger  klog.Logger
	sink    record.EventSink
	changed chan struct{} // wakes the writers

	mu         sync.Mutex
	correlator *record.EventCorrelator
	waiting    []*corev1.Event // oldest first
	// writing has the objects about which an Event is being written. Their next one waits:
	// it may be a count of that, and they shall be in order.
	writing map[object]bool
	dropped int
	urgent  func(namespace string) bool
	// flushing means that no work is more urgent any longer, and that the writers stop
	// when no Event is left.
	flushing bool
}

// object is what Events are about, whatever its version.
type object struct{ kind, namespace, name string }

func objectOf(event *corev1.Event) object {
	about := event.InvolvedObject
	return object{about.Kind, about.Namespace, about.Name}
}

var _ record.EventRecorder = &Recorder{}

// Start starts the writers and returns a recorder. Recording an Event never blocks.
//
// flush stops the writers: it waits until all recorded Events are written or given up,
// but no longer than limit. Call it once, and record nothing afterwards. The end of ctx
// does not stop the writers.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder *Recorder, flush func(limit time.Duration)) {
	r := &Recorder{
		scheme: scheme, source: source, logger: klog.FromContext(ctx), sink: sink,
		changed:    make(chan struct{}, writers),
		correlator: record.NewEventCorrelator(clock.RealClock{}),
		writing:    map[object]bool{},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for range writers {
		running.Go(func() { r.run(ctx) })
	}
	return r, func(limit time.Duration) {
		defer cancel()
		r.mu.Lock()
		r.flushing = true
		r.mu.Unlock()
		for range writers {
			r.wake()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			running.Wait()
		}()
		select {
		case <-done:
		case <-time.After(limit):
			r.logger.Error(nil, "Lost the Events that could not be written before the process ends", "waited", limit)
		}
	}
}

// DeferWhile defers the Events of a namespace while urgent returns true for it.
func (r *Recorder) DeferWhile(urgent func(namespace string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.urgent = urgent
}

// Event records an Event about an object.
func (r *Recorder) Event(object runtime.Object, kind, reason, message string) {
	r.record(object, nil, kind, reason, message)
}

// Eventf records an Event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.record(object, nil, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf records an Event with annotations and a formatted message.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	r.record(object, annotations, kind, reason, fmt.Sprintf(format, args...))
}

func (r *Recorder) record(object runtime.Object, annotations map[string]string, kind, reason, message string) {
	about, err := reference.GetReference(r.scheme, object)
	if err != nil {
		r.logger.Error(err, "Could not make an Event about an object", "reason", reason, "message", message)
		return
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:        util.GenerateEventName(about.Name, now.UnixNano()),
			Namespace:   cmp.Or(about.Namespace, metav1.NamespaceDefault),
			Annotations: annotations,
		},
		InvolvedObject: *about,
		Type:           kind, Reason: reason, Message: message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: r.source, ReportingController: r.source.Component, ReportingInstance: r.source.Host,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Dropping Events because too many are waiting", "waiting", capacity)
		}
		r.dropped++
		return
	}
	r.waiting = append(r.waiting, event)
	r.wake()
}

// wake wakes a writer.
func (r *Recorder) wake() {
	select {
	case r.changed <- struct{}{}:
	default: // all of them will wake anyway
	}
}

// run writes Events until ctx is done, or until none is left when flushing.
func (r *Recorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		next, deferred, ended := r.next()
		var again <-chan time.Time
		switch {
		case ended:
			return
		case next != nil:
			r.write(ctx, next)
			continue
		case deferred:
			again = time.After(recheckPeriod)
		}
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-again:
		}
	}
}

// next takes the next Event to write from the queue. If there is none, deferred reports
// whether urgent work may defer one, and ended whether the writer should stop: another one
// writes those of the object whose Event it is writing.
func (r *Recorder) next() (next *corev1.Event, deferred, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := map[string]bool{} // namespaces with urgent work
	at := slices.IndexFunc(r.waiting, func(event *corev1.Event) bool {
		return !r.writing[objectOf(event)] && !r.isDeferred(event, busy)
	})
	if at < 0 {
		if len(r.waiting) == 0 && r.dropped > 0 {
			r.logger.Info("Wrote all waiting Events after dropping some", "dropped", r.dropped)
			r.dropped = 0
		}
		return nil, len(r.waiting) > 0, r.flushing
	}
	next = r.waiting[at]
	r.waiting = slices.Delete(r.waiting, at, at+1)
	r.writing[objectOf(next)] = true
	return next, false, false
}

// isDeferred reports whether urgent work of its namespace defers an Event. It asks for each
// namespace once, and keeps the answer in busy.
func (r *Recorder) isDeferred(event *corev1.Event, busy map[string]bool) bool {
	namespace := event.InvolvedObject.Namespace
	if r.urgent == nil || r.flushing || time.Since(event.FirstTimestamp.Time) >= maxDeferral {
		return false
	}
	urgent, asked := busy[namespace]
	if !asked {
		urgent = r.urgent(namespace)
		busy[namespace] = urgent
	}
	return urgent
}
