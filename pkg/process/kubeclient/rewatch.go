// SPDX-License-Identifier: Apache-2.0

// Two transports: one makes watches survive a restore of etcd from a backup, the other makes
// initial lists take little memory.

package kubeclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

const (
	// askTimeout bounds the list that guardWatches sends. The API server itself waits 3 s
	// for a resourceVersion that it does not know yet.
	askTimeout = 10 * time.Second
	// statusLimit, in bytes, is larger than any Status.
	statusLimit = 1 << 16
)

// guardWatches makes an informer relist when etcd was restored from a backup.
//
// A resumed watch starts at the resourceVersion of the last event. After a restore, etcd
// may be at an earlier version. The API server opens the watch anyway, and skips all events
// up to that version: the informer sees no change until there have been as many new changes
// as were lost, and it never learns what was lost (kubernetes/kubernetes#107457). A list with
// that version fails, because the version is too large. So before resuming a watch, this
// transport sends a list of one object. If the version is too large, it returns that
// response for the watch, and client-go's reflector relists.
//
// An informer resumes its watch every 5 to 10 minutes, over HTTP/1.1 every 30 s, and after
// each failure. Each time this costs one small list, which the API server serves from memory.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func guardWatches(next http.RoundTripper) http.RoundTripper {
	return roundTripFunc(func(watch *http.Request) (*http.Response, error) {
		if query := watch.URL.Query(); resumesWatch(query) {
			if refusal := refusalOf(next, watch, query); refusal != nil {
				return refusal, nil
			}
		}
		return next.RoundTrip(watch)
	})
}

// resumesWatch reports whether a request is for a watch that starts at a resourceVersion.
// The API server itself checks the version if the watch starts with all objects.
func resumesWatch(query url.Values) bool {
	if query.Get("watch") != "true" && query.Get("watch") != "1" {
		return false
	}
	version := query.Get("resourceVersion")
	return version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
}

// refusalOf sends the list and returns the API server's response if it says that the version is
// too large. Otherwise it returns nil: the watch itself reports any other error.
func refusalOf(next http.RoundTripper, watch *http.Request, query url.Values) *http.Response {
	ctx, cancel := context.WithTimeout(watch.Context(), askTimeout)
	defer cancel()
	for _, name := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "timeout"} {
		query.Del(name)
	}
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	query.Set("limit", "1")
	list := watch.Clone(ctx)
	list.URL.RawQuery = query.Encode()
	list.Header.Set("Accept", runtime.ContentTypeJSON)
	answer, err := next.RoundTrip(list)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, statusLimit))
	if err != nil || !isTooLarge(answer.StatusCode, body) {
		return nil
	}
	// With Retry-After, the client would retry the watch ten times before it relists.
	answer.Header.Del(retryAfter)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer
}

func isTooLarge(code int, body []byte) bool {
	var status metav1.Status
	if code != http.StatusGatewayTimeout || json.Unmarshal(body, &status) != nil {
		return false
	}
	return apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, metav1.CauseTypeResourceVersionTooLarge)
}

// keepStreaming makes an informer repeat the stream of all objects (WatchList) if the stream
// fails, instead of listing the objects.
//
// An informer trims the objects of a stream one by one, but those of a list only when it
// has all of them, so that 1,000 objects of 254 KiB take 600 MB. client-go's reflector falls
// back to such a list after any failure of the stream except 429 and a refused connection,
// for example when a load balancer responds with 503, just when the control plane restarts
// and both replicas list again. This transport lets the list pass only if the API server
// has refused the stream itself (4xx), as it does without the feature, or if the reflector
// does not use streams. Otherwise the list fails, and after its back-off the reflector
// tries the stream again.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func keepStreaming(next http.RoundTripper) http.RoundTripper {
	var outcomes sync.Map // of the latest stream, by the path of the resource
	return roundTripFunc(func(request *http.Request) (*http.Response, error) {
		query, path := request.URL.Query(), request.URL.Path
		if query.Get("sendInitialEvents") == "true" {
			response, err := next.RoundTrip(request)
			outcomes.Store(path, outcomeOf(request, response, err))
			return response, err
		}
		if outcome, sent := outcomes.Load(path); sent && outcome != "" && isFallback(query) {
			return nil, fmt.Errorf("not listing all objects at once; retrying their stream instead, which ended early (%s)", outcome)
		}
		return next.RoundTrip(request)
	})
}

// isFallback reports whether a request for a whole resource may be the reflector's fallback
// after a failed stream: it is a list, and not from guardWatches.
func isFallback(query url.Values) bool {
	return !query.Has("watch") && !query.Has("resourceVersionMatch")
}

// outcomeOf describes the response to a stream, or returns "" if that was refused. It leaves out
// the text of errors, because some texts would make client-go repeat the list ten times.
func outcomeOf(request *http.Request, response *http.Response, err error) string {
	switch {
	case err != nil:
		return "no answer"
	case response.StatusCode == http.StatusBadRequest, response.StatusCode == http.StatusUnprocessableEntity:
		klog.FromContext(request.Context()).Info("The API server does not stream lists: listing holds all objects in memory at once", "path", request.URL.Path)
		return ""
	case response.StatusCode >= 400 && response.StatusCode < 500:
		return "" // the list gets the same response, and the reflector logs it
	}
	return response.Status
}
