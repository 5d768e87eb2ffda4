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
	"context"
	"fmt"
	"hash/maphash"
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
)

const (
	// capacity is the number of Events that may wait, at about 500 bytes each.
	capacity = 10_000
	// maxDeferral is how long urgent work may defer an Event.
	maxDeferral = 30 * time.Second
	// recheckPeriod is how often a deferred Event checks whether urgent work remains.
	recheckPeriod = 50 * time.Millisecond
	// lanes is the number of Events that are written concurrently, at most one for each
	// object. It equals the default number of workers, so that writing the Events takes
	// no longer than the work that they report.
	lanes = 2
)

// Recorder queues Events until they are written. It is a record.EventRecorder.
type Recorder struct {
	scheme *runtime.Scheme
	source corev1.EventSource
	logger klog.Logger

	// seed is for the hash that assigns objects to lanes.
	seed  maphash.Seed
	lanes [lanes]lane

	mu      sync.Mutex
	kept    int // the number of Events in all lanes
	dropped int
	urgent  func(namespace string) bool
	// flushing means that no work is more urgent any longer, and that the writers stop
	// when no Event is left.
	flushing bool
}

// lane queues the Events of some of the objects. Its writer writes one after the other,
// so those of one object are written in the order in which they were recorded.
type lane struct {
	waiting []*waiting    // guarded by the recorder's mu
	changed chan struct{} // wakes the writer
}

var _ record.EventRecorder = &Recorder{}

// waiting is an Event that has been recorded but not written.
type waiting struct {
	object                *corev1.ObjectReference
	annotations           map[string]string
	kind, reason, message string
	at                    time.Time
}

// Start starts the writers and returns a recorder. Recording an Event never blocks.
//
// flush stops the writers: it waits until all recorded Events are written or given up,
// but no longer than limit. Call it once, and record nothing afterwards. The end of ctx
// does not stop the writers.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder *Recorder, flush func(limit time.Duration)) {
	logger := klog.FromContext(ctx)
	r := &Recorder{scheme: scheme, source: source, logger: logger, seed: maphash.MakeSeed()}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	var writers sync.WaitGroup
	w := newWriter(sink)
	for i := range r.lanes {
		l := &r.lanes[i]
		l.changed = make(chan struct{}, 1)
		writers.Go(func() { r.write(ctx, l, w) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		writers.Wait()
	}()
	return r, func(limit time.Duration) {
		defer cancel()
		r.mu.Lock()
		r.flushing = true
		r.mu.Unlock()
		for i := range r.lanes {
			r.lanes[i].wake()
		}
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			logger.Error(nil, "Lost the Events that could not be written before the process ends", "waited", limit)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Dropping Events because too many are waiting", "waiting", capacity)
		}
		r.dropped++
		return
	}
	r.kept++
	l := r.lane(about)
	l.waiting = append(l.waiting, &waiting{about, annotations, kind, reason, message, time.Now()})
	l.wake()
}

// lane returns the lane of an object's Events.
func (r *Recorder) lane(about *corev1.ObjectReference) *lane {
	object := [...]string{about.Kind, about.Namespace, about.Name}
	return &r.lanes[maphash.Comparable(r.seed, object)%lanes]
}

func (l *lane) wake() {
	select {
	case l.changed <- struct{}{}:
	default: // the writer will wake anyway
	}
}

// write writes the Events of a lane until ctx is done, or until none is left when
// flushing.
func (r *Recorder) write(ctx context.Context, l *lane, w *writer) {
	for ctx.Err() == nil {
		next, deferred, ended := r.next(l)
		var again <-chan time.Time
		switch {
		case ended:
			return
		case next != nil:
			w.write(ctx, r.event(next))
			continue
		case deferred:
			again = time.After(recheckPeriod)
		}
		select {
		case <-ctx.Done():
		case <-l.changed:
		case <-again:
		}
	}
}

// next removes the next Event to write from a lane. If there is none, deferred reports
// whether urgent work defers one, and ended whether the writer should stop.
func (r *Recorder) next(l *lane) (next *waiting, deferred, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting = nil // free the memory of a burst
		if r.kept == 0 && r.dropped > 0 {
			r.logger.Info("Wrote all waiting Events after dropping some", "dropped", r.dropped)
			r.dropped = 0
		}
		return nil, false, r.flushing
	}
	at := r.firstNotDeferred(l)
	if at < 0 {
		return nil, true, false
	}
	next = l.waiting[at]
	if at == 0 { // the usual case, at no cost
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
	} else {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	r.kept--
	return next, false, false
}

// firstNotDeferred returns the index of the first Event of a lane that no urgent work of
// its namespace defers, or -1.
func (r *Recorder) firstNotDeferred(l *lane) int {
	if r.urgent == nil || r.flushing {
		return 0
	}
	busy := map[string]bool{}
	return slices.IndexFunc(l.waiting, func(w *waiting) bool {
		if time.Since(w.at) >= maxDeferral {
			return true
		}
		urgent, asked := busy[w.object.Namespace]
		if !asked {
			urgent = r.urgent(w.object.Namespace)
			busy[w.object.Namespace] = urgent
		}
		return !urgent
	})
}

// event makes the Event, with the time at which it was recorded.
func (r *Recorder) event(w *waiting) *corev1.Event {
	at := metav1.NewTime(w.at)
	namespace := w.object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: util.GenerateEventName(w.object.Name, w.at.UnixNano()), Namespace: namespace, Annotations: w.annotations,
		},
		InvolvedObject: *w.object,
		Type:           w.kind, Reason: w.reason, Message: w.message,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: r.source, ReportingController: r.source.Component, ReportingInstance: r.source.Host,
	}
}
