// SPDX-License-Identifier: Apache-2.0

// The transport that keeps informers from listing all objects at once.

package kubeclient

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/klog/v2"
)

// keepStreaming makes an informer repeat the stream of all objects (WatchList) if that
// fails, instead of listing them.
//
// An informer trims the objects of a stream one by one, but those of a list only when it
// has all of them, so that 1,000 Foos of 254 KiB take 600 MB. client-go's reflector falls
// back to such a list after any failure of the stream but 429 and a refused connection,
// for example when a load balancer answers 503, just when the control plane restarts and
// both replicas list again. This transport lets the list pass only if the API server has
// refused the stream itself (4xx), as one without the feature does, or if the reflector
// does not use streams. Otherwise the list fails, and after its back-off the reflector
// begins with the stream again.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func keepStreaming(next http.RoundTripper) http.RoundTripper {
	return &streamKeeper{next: next, answers: map[string]string{}}
}

type streamKeeper struct {
	next http.RoundTripper
	mu   sync.Mutex
	// answers maps the path of a resource to the answer to its latest stream, unless that
	// was a refusal.
	answers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (k *streamKeeper) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		response, err := k.next.RoundTrip(request)
		k.record(request, response, err)
		return response, err
	}
	k.mu.Lock()
	answer := k.answers[request.URL.Path]
	k.mu.Unlock()
	if answer != "" && isFallback(query) {
		return nil, fmt.Errorf("not listing all objects at once, but repeating their stream, which ended early (%s)", answer)
	}
	return k.next.RoundTrip(request)
}

// isFallback reports whether a reflector may send a request of a whole resource because
// the stream failed: it is a list, and not one of guardWatches.
func isFallback(query url.Values) bool {
	return !query.Has("watch") && !query.Has("resourceVersionMatch")
}

// record remembers the answer to a stream. It leaves out the text of errors: with that of
// some, client-go would repeat the list ten times.
func (k *streamKeeper) record(request *http.Request, response *http.Response, err error) {
	answer := "no answer"
	if err == nil {
		answer = response.Status
		switch {
		case response.StatusCode == http.StatusBadRequest, response.StatusCode == http.StatusUnprocessableEntity:
			klog.FromContext(request.Context()).Info("The API server does not stream all objects: listing them takes the memory of all at once", "path", request.URL.Path)
			answer = ""
		case response.StatusCode >= 400 && response.StatusCode < 500:
			answer = "" // the list gets the same answer, and the reflector logs it
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[request.URL.Path] = answer
}
