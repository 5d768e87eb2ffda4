// SPDX-License-Identifier: Apache-2.0

// Package events records Events and writes them in the background, two at a time.
//
// client-go's broadcaster queues a thousand Events, drops the rest, and writes them one after
// another. When thousands of objects are reconciled at once, it loses Events. This package queues
// ten thousand, in two queues for each namespace. client-go's correlator still aggregates repeated
// Events and limits their rate.
//
// Events that can't be written, because the API server fails or does not respond, do not stop
// those of other namespaces.
//
// Start needs the verbs create and patch on events. Ten thousand waiting Events take 17 MiB, and 21 MiB more if each object
// has one, in 5,000 namespaces. They are lost unless the process calls flush before it ends.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
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
	// writers is the number of Events that are written concurrently, in all namespaces together
	// and in one. It equals the default number of workers, so that writing the Events takes no
	// longer than the work that they report.
	writers = 2
	// hangsAfter is after how long a write without a response no longer counts as one of
	// them, and maxHanging is how many such writes there may be.
	hangsAfter = 200 * time.Millisecond
	maxHanging = 50
	// attempts is how often an Event is sent while the API server can't be reached, and
	// retryAfter the time between two attempts, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// Recorder queues Events until they are written. It is a record.EventRecorder.
type Recorder struct {
	scheme     *runtime.Scheme
	source     corev1.EventSource
	logger     klog.Logger
	sink       record.EventSink
	correlator *record.EventCorrelator
	// writing has a place for each write that does not hang, and sending for each write.
	writing, sending chan struct{}
	// stopped is closed when nothing more may be written.
	stopped <-chan struct{}

	mu sync.Mutex
	// queues has those whose Events are being written or wait, and count is the number of
	// Events that wait.
	queues  map[place]*queue
	count   int
	dropped int
	// busy counts the queues.
	busy sync.WaitGroup
}

// place identifies a queue. A namespace has several, so that several of its Events are
// written concurrently.
type place struct {
	namespace string
	number    uint32
}

// queue has Events that are written one after another by a goroutine of its own. All Events about
// an object are in one queue, because they may only raise the count of the first.
type queue struct {
	events []*corev1.Event // oldest first
}

var _ record.EventRecorder = &Recorder{}

// Start starts the writing and returns a recorder. Recording an Event never blocks.
//
// flush stops the writing: it waits until all recorded Events are written or given up,
// but no longer than limit. Call it once, and record nothing afterwards. The end of ctx
// does not stop the writing.
func Start(ctx context.Context, sink record.EventSink, scheme *runtime.Scheme, source corev1.EventSource) (recorder *Recorder, flush func(limit time.Duration)) {
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{
		scheme: scheme, source: source, logger: klog.FromContext(ctx), sink: sink,
		correlator: record.NewEventCorrelator(clock.RealClock{}),
		writing:    make(chan struct{}, writers), sending: make(chan struct{}, writers+maxHanging),
		stopped: stopped.Done(), queues: map[place]*queue{},
	}
	r.busy.Add(1) // until the flush
	leave := sync.OnceFunc(r.busy.Done)
	return r, func(limit time.Duration) {
		defer stop()
		leave()
		idle := make(chan struct{})
		go func() {
			r.busy.Wait()
			close(idle)
		}()
		select {
		case <-idle:
		case <-time.After(limit):
			r.logger.Error(nil, "Lost the Events that could not be written before the process ends", "waited", limit)
		}
	}
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

func (r *Recorder) enqueue(event *corev1.Event) {
	about := event.InvolvedObject
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(about.Name))
	of := place{about.Namespace, hash.Sum32() % writers}
	r.mu.Lock()
	defer r.mu.Unlock()
	q, found := r.queues[of]
	if !found {
		q = &queue{}
	}
	if r.count >= capacity {
		if r.dropped == 0 {
			r.logger.Error(nil, "Dropping Events because too many are waiting", "waiting", capacity)
		}
		if r.dropped++; !r.dropFor(q) {
			return
		}
	}
	q.events = append(q.events, event)
	r.count++
	if !found {
		r.queues[of] = q
		r.busy.Go(func() { r.writeAll(of, q) })
	}
}

// dropFor makes room for an Event in a queue: it drops the last Event of the longest queue, and
// returns false if that is the same one.
func (r *Recorder) dropFor(q *queue) bool {
	longest := q
	for _, other := range r.queues {
		if len(other.events) > len(longest.events) {
			longest = other
		}
	}
	if longest == q {
		return false
	}
	longest.events = longest.events[:len(longest.events)-1]
	r.count--
	return true
}

// writeAll writes the Events of a queue until it is empty.
func (r *Recorder) writeAll(of place, q *queue) {
	for event := r.next(of, q); event != nil; event = r.next(of, q) {
		r.send(event)
	}
}

// next removes the first Event from a queue. If there is none, it removes the queue, and returns nil.
func (r *Recorder) next(of place, q *queue) (event *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 && r.dropped > 0 {
		r.logger.Info("Wrote all waiting Events after dropping some", "dropped", r.dropped)
		r.dropped = 0
	}
	if len(q.events) > 0 && !isClosed(r.stopped) {
		event, q.events = q.events[0], q.events[1:]
		r.count--
		return event
	}
	delete(r.queues, of)
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// send writes an Event. It gives the Event up if there are too many similar Events, if the API
// server refuses the Event, or after too many attempts.
func (r *Recorder) send(event *corev1.Event) {
	about := event.InvolvedObject
	logger := klog.LoggerWithValues(r.logger, "about", klog.KRef(about.Namespace, about.Name), "reason", event.Reason)
	// A repeated Event only raises the count of the first.
	result, err := r.correlator.EventCorrelate(event)
	if err != nil {
		logger.Error(err, "Could not correlate an Event with earlier ones")
	}
	if result == nil || result.Skip {
		return
	}
	for attempt := 1; !isClosed(r.stopped); attempt++ {
		err := r.sendInTurn(result)
		switch {
		case err == nil:
			return
		case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			logger.V(5).Info("The API server refused an Event", "err", err) // as expected
			return
		case isRefusal(err):
			logger.Error(err, "Lost an Event that the API server refused")
			return
		case attempt == attempts:
			logger.Error(err, "Lost an Event that could not be written")
			return
		}
		logger.V(2).Info("Could not write an Event yet", "retryAfter", retryAfter, "err", err)
		select {
		case <-time.After(retryAfter):
		case <-r.stopped:
		}
	}
}

// sendInTurn waits until one more Event may be written, or the recorder has stopped, and sends it.
// A write that hangs makes room for another.
func (r *Recorder) sendInTurn(result *record.EventCorrelateResult) error {
	for _, places := range []chan struct{}{r.sending, r.writing} {
		select {
		case places <- struct{}{}:
		case <-r.stopped:
			return nil
		}
	}
	defer func() { <-r.sending }()
	leave := sync.OnceFunc(func() { <-r.writing })
	defer leave()
	defer time.AfterFunc(hangsAfter, leave).Stop()
	return r.sendOnce(result)
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
