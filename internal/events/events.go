/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package events writes Events in the background, after what is more urgent.
//
// client-go's broadcaster keeps a thousand Events and drops the rest, and writes
// them as fast as it can. When thousands of objects are worked on at once that
// loses Events, and those that are written take the API server's time from the
// work that they tell of. Here ten thousand are kept, and they wait while there is
// such work, up to a limit. What becomes of an Event that has been seen before,
// or too often, is decided by client-go's correlator, as everywhere.
package events

import (
	"context"
	"fmt"
	"hash/maphash"
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
	// capacity is how many Events may wait, at about 500 bytes each.
	capacity = 10_000
	// patience is how long an Event may wait for urgent work to end.
	patience = 30 * time.Second
	// lookAgain is how often that is looked at.
	lookAgain = 50 * time.Millisecond
	// lanes is how many Events are written at a time, at most one of an object:
	// as many as workers sync by default, so that Events that come last take no
	// longer than the work that they tell of.
	lanes = 2
)

// Recorder keeps Events until they are written. It is a record.EventRecorder.
type Recorder struct {
	scheme *runtime.Scheme
	source corev1.EventSource
	logger klog.Logger

	// seed spreads objects over the lanes.
	seed  maphash.Seed
	lanes [lanes]lane

	mu      sync.Mutex
	kept    int // in all lanes
	dropped int
	urgent  func() bool
	// flushing tells that nothing is more urgent any more, and that the writers
	// end when nothing is left.
	flushing bool
}

// lane keeps the Events of some of the objects, which are written one after the
// other: those of one object in the order in which they were recorded.
type lane struct {
	waiting []*waiting    // under the recorder's lock
	news    chan struct{} // wakes the writer
}

var _ record.EventRecorder = &Recorder{}

// waiting is an Event to be.
type waiting struct {
	object                *corev1.ObjectReference
	annotations           map[string]string
	kind, reason, message string
	at                    time.Time
}

// Start returns a recorder whose Events are written to a sink in the background,
// those of one object one after the other; recording one never waits.
//
// The function returned ends that: it waits until all that was recorded before
// is written or given up, but no longer than limit. It is called once, and
// after it nothing must be recorded. The end of ctx ends nothing.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder *Recorder, flush func(limit time.Duration)) {
	logger := klog.FromContext(ctx)
	r := &Recorder{scheme: scheme, source: source, logger: logger, seed: maphash.MakeSeed()}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	var writers sync.WaitGroup
	w := newWriter(sink)
	for i := range r.lanes {
		l := &r.lanes[i]
		l.news = make(chan struct{}, 1)
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
			logger.Error(nil, "Events that could not be written in time are lost", "waited", limit)
		}
	}
}

// YieldTo has Events wait while urgent returns true.
func (r *Recorder) YieldTo(urgent func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.urgent = urgent
}

// Event records an Event about an object.
func (r *Recorder) Event(object runtime.Object, kind, reason, message string) {
	r.record(object, nil, kind, reason, message)
}

// Eventf is Event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.record(object, nil, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf is Eventf with annotations of the Event.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	r.record(object, annotations, kind, reason, fmt.Sprintf(format, args...))
}

func (r *Recorder) record(object runtime.Object, annotations map[string]string, kind, reason, message string) {
	about, err := reference.GetReference(r.scheme, object)
	if err != nil {
		r.logger.Error(err, "No Event can be made about this object", "reason", reason, "message", message)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Too many Events are waiting: some are dropped", "waiting", capacity)
		}
		r.dropped++
		return
	}
	r.kept++
	l := r.lane(about)
	l.waiting = append(l.waiting, &waiting{about, annotations, kind, reason, message, time.Now()})
	l.wake()
}

// lane returns the lane of an object.
func (r *Recorder) lane(about *corev1.ObjectReference) *lane {
	object := [...]string{about.Kind, about.Namespace, about.Name}
	return &r.lanes[maphash.Comparable(r.seed, object)%lanes]
}

func (l *lane) wake() {
	select {
	case l.news <- struct{}{}:
	default: // it is awake
	}
}

// write writes what is recorded in a lane, until all is written after a flush,
// or ctx is done.
func (r *Recorder) write(ctx context.Context, l *lane, w *writer) {
	for ctx.Err() == nil {
		next, urgent, ended := r.next(l)
		var again <-chan time.Time
		switch {
		case ended:
			return
		case next != nil:
			w.write(ctx, r.event(next))
			continue
		case urgent:
			again = time.After(lookAgain)
		}
		select {
		case <-ctx.Done():
		case <-l.news:
		case <-again:
		}
	}
}

// next takes the next Event to write from a lane. If there is none, it tells
// whether one waits for something urgent, and whether there will be none any more.
func (r *Recorder) next(l *lane) (next *waiting, urgent, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting = nil // the memory of a flood
		if r.kept == 0 && r.dropped > 0 {
			r.logger.Info("All Events that were kept are written", "dropped", r.dropped)
			r.dropped = 0
		}
		return nil, false, r.flushing
	}
	next = l.waiting[0]
	if r.urgent != nil && !r.flushing && time.Since(next.at) < patience && r.urgent() {
		return nil, true, false
	}
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	r.kept--
	return next, false, false
}

// event makes the Event, as of when it was recorded.
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
