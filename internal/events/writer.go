// SPDX-License-Identifier: Apache-2.0

// Writing an Event, with retries and client-go's correlator.

package events

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"
)

const (
	// attempts is how often an Event is sent while the API server can't be reached, and
	// retryAfter the time between two attempts, as in client-go.
	attempts   = 12
	retryAfter = 10 * time.Second
)

// write writes an Event. It gives up if there are too many of its kind, if the API server
// refuses the Event, if the API server can't be reached for two minutes, or when ctx is
// done.
func (r *Recorder) write(ctx context.Context, event *corev1.Event) {
	about := objectOf(event)
	logger := klog.LoggerWithValues(r.logger, "about", klog.KRef(about.namespace, about.name), "reason", event.Reason)
	// A repeated Event becomes a higher count of the first.
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
			logger.V(5).Info("The API server refused an Event", "err", err) // as it should
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
