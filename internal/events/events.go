// SPDX-License-Identifier: Apache-2.0

// Package events records Events and writes them in the background, after more urgent
// work.
//
// client-go's broadcaster queues a thousand Events, drops the rest, and writes them as
// fast as it can. When thousands of objects are reconciled at once, it loses Events, and
// the Events that it writes compete for the API server with the work that they report. This
// package queues ten thousand Events, and defers them while there is such work, up to a
// limit. client-go's correlator still aggregates repeated Events and limits their rate.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	scheme     *runtime.Scheme
	source     corev1.EventSource
	logger     klog.Logger
	sink       record.EventSink
	correlator *record.EventCorrelator

	mu sync.Mutex
	// changed wakes a writer. While Events are deferred, recheck also wakes one.
	changed *sync.Cond
	recheck *time.Timer
	// waiting has the Events of each namespace, oldest first, and count is their number.
	waiting map[string][]*corev1.Event
	count   int
	// writing maps the objects about which an Event is being written to their next Events. The
	// same writer writes these in order, because they may only raise the count of the first.
	writing map[object][]*corev1.Event
	dropped int
	urgent  func(namespace string) bool
	// flushing means that no work is urgent any more, and that the writers stop when no
	// Event is left.
	flushing bool
}

// object identifies the object of an Event, without its version.
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
		correlator: record.NewEventCorrelator(clock.RealClock{}),
		waiting:    map[string][]*corev1.Event{},
		writing:    map[object][]*corev1.Event{},
	}
	r.changed = sync.NewCond(&r.mu)
	r.recheck = time.AfterFunc(recheckPeriod, r.changed.Signal)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for event := r.next(ctx, nil); event != nil; event = r.next(ctx, event) {
				r.write(ctx, event)
			}
		})
	}
	return r, func(limit time.Duration) {
		defer cancel()
		r.mu.Lock()
		r.flushing = true
		r.mu.Unlock()
		r.changed.Broadcast()
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
	r.AnnotatedEventf(object, nil, kind, reason, "%s", message)
}

// Eventf records an Event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.AnnotatedEventf(object, nil, kind, reason, format, args...)
}

// AnnotatedEventf records an Event with annotations and a formatted message.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	about, err := reference.GetReference(r.scheme, object)
	if err != nil {
		r.logger.Error(err, "Could not create an Event about an object", "reason", reason, "message", message)
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
	if r.count >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Dropping Events because too many are waiting", "waiting", capacity)
		}
		r.dropped++
		return
	}
	r.count++
	r.waiting[about.Namespace] = append(r.waiting[about.Namespace], event)
	r.changed.Signal()
}

// next waits for an Event to write, and returns nil when ctx is done, or when no Event is left
// while flushing. written is the writer's previous Event, or nil.
func (r *Recorder) next(ctx context.Context, written *corev1.Event) *corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if written != nil {
		about := objectOf(written)
		if more := r.writing[about]; len(more) > 0 {
			r.count--
			r.writing[about] = more[1:]
			return more[0]
		}
		delete(r.writing, about)
	}
	for ctx.Err() == nil {
		if event := r.take(); event != nil {
			r.changed.Signal() // another writer may find one, too
			return event
		}
		if r.count == 0 && r.dropped > 0 {
			r.logger.Info("Wrote all waiting Events after dropping some", "dropped", r.dropped)
			r.dropped = 0
		}
		if r.flushing {
			break
		}
		if len(r.waiting) > 0 {
			r.recheck.Reset(recheckPeriod)
		}
		r.changed.Wait()
	}
	return nil
}

// take takes a waiting Event that is not deferred, or returns nil.
func (r *Recorder) take() (next *corev1.Event) {
	for namespace, events := range r.waiting {
		for len(events) > 0 && next == nil && !r.isDeferred(events[0]) {
			about := objectOf(events[0])
			if more, isBeingWritten := r.writing[about]; isBeingWritten {
				r.writing[about] = append(more, events[0])
			} else {
				next = events[0]
				r.count--
				r.writing[about] = nil
			}
			events = events[1:]
		}
		if r.waiting[namespace] = events; len(events) == 0 {
			delete(r.waiting, namespace)
		}
		if next != nil {
			break
		}
	}
	return next
}

// isDeferred reports whether urgent work in its namespace defers an Event.
func (r *Recorder) isDeferred(event *corev1.Event) bool {
	return r.urgent != nil && !r.flushing && time.Since(event.FirstTimestamp.Time) < maxDeferral &&
		r.urgent(event.InvolvedObject.Namespace)
}

const (
	// attempts is how often an Event is sent while the API server can't be reached, and
	// retryAfter the time between two attempts, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// write writes an Event. It gives up if there are too many similar Events, if the API server
// refuses the Event, if the API server can't be reached for two minutes, or when ctx is
// done.
func (r *Recorder) write(ctx context.Context, event *corev1.Event) {
	about := objectOf(event)
	logger := klog.LoggerWithValues(r.logger, "about", klog.KRef(about.namespace, about.name), "reason", event.Reason)
	// A repeated Event only raises the count of the first.
	result, err := r.correlator.EventCorrelate(event)
	if err != nil {
		logger.Error(err, "Could not correlate an Event with earlier ones")
	}
	if result != nil && !result.Skip {
		r.sendUntilWritten(ctx, logger, result)
	}
}

func (r *Recorder) sendUntilWritten(ctx context.Context, logger klog.Logger, result *record.EventCorrelateResult) {
	var err error
	for range attempts {
		err = r.send(result)
		switch {
		case err == nil:
			return
		case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			logger.V(5).Info("The API server refused an Event", "err", err) // as expected
			return
		case isRefusal(err):
			logger.Error(err, "Lost an Event that the API server refused")
			return
		}
		logger.V(2).Info("Could not write an Event yet", "retryAfter", retryAfter, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
	logger.Error(err, "Lost an Event that could not be written")
}

// isRefusal reports whether the API server refused an Event and would refuse it again.
// Unauthorized is not a refusal: the kubelet renews an expired token, client-go reads the
// new one within a minute, and the API server also answers 401 while its authenticator is
// unavailable.
func isRefusal(err error) bool {
	var answer *apierrors.StatusError
	return errors.As(err, &answer) && answer.ErrStatus.Code < http.StatusInternalServerError &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

func (r *Recorder) send(result *record.EventCorrelateResult) error {
	var written *corev1.Event
	var err error
	if result.Event.Count > 1 {
		written, err = r.sink.Patch(result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || util.IsKeyNotFoundError(err) {
		// A new Event, or the first one has been deleted since.
		result.Event.ResourceVersion = ""
		written, err = r.sink.Create(result.Event)
	}
	if err == nil {
		r.correlator.UpdateState(written)
	}
	return err
}
