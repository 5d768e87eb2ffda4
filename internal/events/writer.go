// SPDX-License-Identifier: Apache-2.0

// The writer of Events, with retries and client-go's correlator.

package events

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// attempts is how often the writer tries to write an Event while the API server can't
	// be reached, and retryAfter the time between two attempts, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// writer writes Events to a sink. It writes a repeated Event as a higher count of the
// first one.
type writer struct {
	sink record.EventSink

	// mu serializes the calls of the correlator.
	mu         sync.Mutex
	correlator *record.EventCorrelator
}

func newWriter(sink record.EventSink) *writer {
	return &writer{sink: sink, correlator: record.NewEventCorrelator(clock.RealClock{})}
}

// write writes an Event. It gives up if there are too many of its kind, if the API server
// refuses the Event, if the API server can't be reached for two minutes, or when ctx is
// done. Two Events of one object must not be written concurrently, because the second may
// be a count of the first.
func (w *writer) write(ctx context.Context, event *corev1.Event) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "about", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name),
		"reason", event.Reason)
	result, err := w.correlate(event)
	if err != nil {
		logger.Error(err, "Could not correlate an Event with earlier ones")
	}
	if result == nil || result.Skip {
		return
	}
	for range attempts {
		err = w.send(result)
		if err == nil {
			return
		}
		if isRefusal(err) {
			reportRefusal(logger, err)
			return
		}
		logger.V(2).Info("Could not write an Event yet", "retryAfter", retryAfter, "err", err)
		timer := time.NewTimer(retryAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	logger.Error(err, "Lost an Event that could not be written")
}

// correlate compares an Event with earlier ones.
func (w *writer) correlate(event *corev1.Event) (*record.EventCorrelateResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.correlator.EventCorrelate(event)
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

// reportRefusal logs that the API server refused an Event. It is no error if the
// namespace is being deleted or the Event exists already.
func reportRefusal(logger klog.Logger, err error) {
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		logger.V(5).Info("The API server refused an Event", "err", err)
		return
	}
	logger.Error(err, "Lost an Event that the API server refused")
}

func (w *writer) send(result *record.EventCorrelateResult) error {
	var written *corev1.Event
	var err error
	if result.Event.Count > 1 {
		written, err = w.sink.Patch(result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || util.IsKeyNotFoundError(err) {
		// A new Event, or the first one has been deleted since.
		result.Event.ResourceVersion = ""
		written, err = w.sink.Create(result.Event)
	}
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.correlator.UpdateState(written)
	}
	return err
}
