// SPDX-License-Identifier: Apache-2.0

// Package events records Events and writes them in the background, after more urgent
// work.
//
// client-go's broadcaster queues a thousand Events, drops the rest, and writes them as
// fast as it can. When thousands of objects are reconciled at once, it loses Events, and
// the Events that it writes compete for the API server with the work that they report. This
// package queues ten thousand Events, and defers them while there is such work, up to a
// limit. client-go's correlator still aggregates repeated Events and limits their rate.
//
// Events that can't be written, because the API server fails or does not respond, do not stop
// those of other namespaces.
//
// Start needs the verbs create and patch on events. Waiting Events take up to 10 MiB, and are lost
// unless the process calls flush before it ends.
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
	// hangsAfter is after how long a write without a response no longer counts as one of
	// them, and maxHanging is how many such writes there may be.
	hangsAfter = 200 * time.Millisecond
	maxHanging = 50
)

// Recorder queues Events until they are written. It is a record.EventRecorder.
type Recorder struct {
	scheme     *runtime.Scheme
	source     corev1.EventSource
	logger     klog.Logger
	sink       record.EventSink
	correlator *record.EventCorrelator

	mu sync.Mutex
	// changed wakes the loop that starts the writes, as does recheck while Events must wait.
	changed *sync.Cond
	recheck *time.Timer
	// namespaces has those with Events. count is the number of Events that are not being
	// written. writing and hanging are the numbers of writes, without and after hangsAfter.
	namespaces              map[string]*namespace
	count, writing, hanging int
	dropped                 int
	urgent                  func(namespace string) bool
	// flushing means that no work is urgent any more, and that the loop ends when no Event
	// is left.
	flushing bool
}

var _ record.EventRecorder = &Recorder{}

// Start starts the writing and returns a recorder. Recording an Event never blocks.
//
// flush stops the writing: it waits until all recorded Events are written or given up,
// but no longer than limit. Call it once, and record nothing afterwards. The end of ctx
// does not stop the writing.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder *Recorder, flush func(limit time.Duration)) {
	r := &Recorder{
		scheme: scheme, source: source, logger: klog.FromContext(ctx), sink: sink,
		correlator: record.NewEventCorrelator(clock.RealClock{}),
		namespaces: map[string]*namespace{},
	}
	r.changed = sync.NewCond(&r.mu)
	r.recheck = time.AfterFunc(recheckPeriod, r.changed.Signal)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, r.changed.Signal)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for of := r.next(ctx); of != nil; of = r.next(ctx) {
			go r.write(of)
		}
	}()
	return r, func(limit time.Duration) {
		defer cancel()
		r.mu.Lock()
		r.flushing = true
		r.mu.Unlock()
		r.changed.Signal()
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
	r.enqueue(event)
}

const (
	// attempts is how often an Event is sent while the API server can't be reached, and
	// retryAfter the time between two attempts, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// send sends the first Event of an object, and reports whether to send it again. It gives the
// Event up if there are too many similar Events, if the API server refuses the Event, or after
// too many attempts.
func (r *Recorder) send(of *objectEvents) (again bool) {
	event := of.first
	logger := klog.LoggerWithValues(r.logger, "about", klog.KRef(of.object.namespace, of.name), "reason", event.Reason)
	if of.correlated == nil {
		// A repeated Event only raises the count of the first.
		result, err := r.correlator.EventCorrelate(event)
		if err != nil {
			logger.Error(err, "Could not correlate an Event with earlier ones")
		}
		if result == nil || result.Skip {
			return false
		}
		of.correlated = result
	}
	err := r.sendOnce(of.correlated)
	of.attempts++
	switch {
	case err == nil:
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		logger.V(5).Info("The API server refused an Event", "err", err) // as expected
	case isRefusal(err):
		logger.Error(err, "Lost an Event that the API server refused")
	case of.attempts >= attempts:
		logger.Error(err, "Lost an Event that could not be written")
	default:
		logger.V(2).Info("Could not write an Event yet", "retryAfter", retryAfter, "err", err)
		return true
	}
	return false
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

func (r *Recorder) sendOnce(result *record.EventCorrelateResult) error {
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
