// SPDX-License-Identifier: Apache-2.0

// The transport that makes watches survive a restore of etcd from a backup.

package kubeclient

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// askTimeout bounds the list that guardWatches sends. The API server itself waits 3 s
	// for a resourceVersion that it does not know yet.
	askTimeout = 10 * time.Second
	// statusLimit is more than the size of any Status, in bytes.
	statusLimit = 1 << 16
)

// guardWatches makes an informer relist when etcd was restored from a backup.
//
// A resumed watch starts at the resourceVersion of the last event. After a restore, etcd
// may be at an earlier version. The API server opens the watch nevertheless, and skips
// all events up to that version: until as many changes as were lost have been made again,
// the informer sees none, and it never learns what was lost
// (kubernetes/kubernetes#107457). To a list with that version the API server answers that
// it is too large. So before resuming a watch, this transport sends a list of one object.
// If the version is too large, it returns that answer to the watch, and client-go's
// reflector relists.
//
// An informer resumes its watch every 5 to 10 minutes and after each failure. Each time
// this costs one small list, which the API server answers from memory.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func guardWatches(next http.RoundTripper) http.RoundTripper { return watchGuard{next} }

type watchGuard struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g watchGuard) RoundTrip(watch *http.Request) (*http.Response, error) {
	query := watch.URL.Query()
	if !resumesWatch(query) {
		return g.next.RoundTrip(watch)
	}
	if refusal := g.ask(watch, query); refusal != nil {
		return refusal, nil
	}
	return g.next.RoundTrip(watch)
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

// ask sends the list and returns the API server's response if that says that the version
// is too large. Otherwise it returns nil: the watch itself reports any other error.
func (g watchGuard) ask(watch *http.Request, query url.Values) *http.Response {
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
	answer, err := g.next.RoundTrip(list)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, statusLimit))
	if err != nil || !isTooLarge(answer.StatusCode, body) {
		return nil
	}
	// With Retry-After the client would retry the watch ten times before it relists.
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
