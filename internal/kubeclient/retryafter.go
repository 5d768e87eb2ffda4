// SPDX-License-Identifier: Apache-2.0

// The transport that passes a Retry-After on to the caller instead of waiting for it.

package kubeclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const retryAfter = "Retry-After"

// handOverRetryAfter passes the Retry-After of a response on to the caller: it moves the
// header into the response's body, a Status.
//
// When the API server answers 429 or 5xx with that header, client-go sleeps within the
// call and retries it, up to ten times. This blocks the worker just when the server is
// busy. With this transport the call fails at once, with an error from which
// apierrors.SuggestsClientDelay reads the seconds, and the key waits in the work queue.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func handOverRetryAfter(next http.RoundTripper) http.RoundTripper { return retryAfterTransport{next} }

type retryAfterTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retryAfterTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, err
	}
	// Like client-go, ignore a date.
	seconds, err := strconv.ParseInt(response.Header.Get(retryAfter), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // then it is the largest number
		return response, nil // client-go does not wait without seconds
	}
	response.Header.Del(retryAfter)
	if mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); mediaType == runtime.ContentTypeProtobuf {
		return response, nil // a Status of the API server, which has the seconds as well
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, statusLimit))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	body, err = json.Marshal(statusOf(request, response.StatusCode, body, int32(seconds)))
	if err != nil {
		return nil, err
	}
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}

// statusOf returns the Status in a response's body, with the seconds added. Priority and
// Fairness and proxies answer with plain text: it makes a Status of that.
func statusOf(request *http.Request, code int, body []byte, seconds int32) *metav1.Status {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		made := apierrors.NewGenericServerResponse(code, request.Method, schema.GroupResource{}, "", string(bytes.TrimSpace(body)), int(seconds), true)
		made.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return &made.ErrStatus
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = seconds
	return &status
}
