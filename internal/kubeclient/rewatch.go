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
	// askTimeout bounds that list. The API server itself waits 3 s for a version that
	// it does not know yet.
	askTimeout = 10 * time.Second
	// statusLimit is more than a Status takes, in bytes.
	statusLimit = 1 << 16
)

// guardWatches keeps an informer from going deaf when etcd is restored from a backup.
//
// A watch that is continued names the resourceVersion of the last event. After a
// restore the store may not have come as far: the API server then opens the watch all
// the same, and leaves out every event up to that version. The informer's cache keeps
// objects that are gone until the cluster has made as many changes again as were lost,
// and it never hears what was lost (kubernetes/kubernetes#107457). A list gets another
// answer: that the version is too large. So this transport sends a list of one object
// before it continues a watch. If the API server does not know the version, the watch
// gets that answer, upon which client-go's reflector lists again.
//
// An informer continues its watch every 5 to 10 minutes and after each failure:
// that often it costs one small list, which the API server answers from memory.
//
// It has the signature of rest.Config's wrappers.
func guardWatches(next http.RoundTripper) http.RoundTripper { return watchGuard{next} }

type watchGuard struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g watchGuard) RoundTrip(watch *http.Request) (*http.Response, error) {
	query := watch.URL.Query()
	if !continuesWatch(query) {
		return g.next.RoundTrip(watch)
	}
	if refusal := g.ask(watch, query); refusal != nil {
		return refusal, nil
	}
	return g.next.RoundTrip(watch)
}

// continuesWatch reports whether a request is for a watch from a version on. One
// that begins with all objects is checked by the API server itself.
func continuesWatch(query url.Values) bool {
	if query.Get("watch") != "true" && query.Get("watch") != "1" {
		return false
	}
	version := query.Get("resourceVersion")
	return version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
}

// ask returns the API server's answer if it says that the version is too large, else
// nil: the watch itself will report anything else.
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
	// The client would ask ten times again: it is not later that helps, but a list.
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
