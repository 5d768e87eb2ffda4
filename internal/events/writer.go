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
	// attempts is how often an Event is tried that does not reach the API server,
	// and retryAfter the time between, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// writer writes Events to a sink: one that has been seen before as a higher
// count of the first.
type writer struct {
	sink record.EventSink

	// mu is for the correlator, which takes Events one at a time.
	mu         sync.Mutex
	correlator *record.EventCorrelator
}

func newWriter(sink record.EventSink) *writer {
	return &writer{sink: sink, correlator: record.NewEventCorrelator(clock.RealClock{})}
}

// write writes an Event, or gives it up: there are too many of its kind, the API
// server refuses it, or can't be reached for two minutes. It returns early if ctx
// is done. Two of one object must not be written at the same time: the second may
// be a count of the first.
func (w *writer) write(ctx context.Context, event *corev1.Event) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "about", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name),
		"reason", event.Reason)
	result, err := w.correlate(event)
	if err != nil {
		logger.Error(err, "An Event could not be compared with earlier ones")
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
		logger.V(2).Info("An Event could not be written yet", "retryAfter", retryAfter, "err", err)
		timer := time.NewTimer(retryAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	logger.Error(err, "An Event could not be written and is lost")
}

// correlate compares an Event with those before it.
func (w *writer) correlate(event *corev1.Event) (*record.EventCorrelateResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.correlator.EventCorrelate(event)
}

// isRefusal reports whether the API server has answered and would answer the same
// again. A token that is not accepted may be accepted soon: the kubelet renews it,
// client-go reads the new one within a minute, and an API server whose
// authenticator is away answers 401 as well.
func isRefusal(err error) bool {
	var answer *apierrors.StatusError
	return errors.As(err, &answer) && answer.ErrStatus.Code < http.StatusInternalServerError &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

// reportRefusal reports what the API server will not have. Where the namespace is
// being deleted, or the Event is there, nobody misses it.
func reportRefusal(logger klog.Logger, err error) {
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		logger.V(5).Info("An Event was refused", "err", err)
		return
	}
	logger.Error(err, "An Event was refused and is lost")
}

func (w *writer) send(result *record.EventCorrelateResult) error {
	var written *corev1.Event
	var err error
	if result.Event.Count > 1 {
		written, err = w.sink.Patch(result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || util.IsKeyNotFoundError(err) {
		// New, or the first one has been removed since.
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
