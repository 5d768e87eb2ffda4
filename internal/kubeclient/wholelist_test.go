// SPDX-License-Identifier: Apache-2.0

// Tests of the fallback from a stream of all objects to a list.

package kubeclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAListFollowsAStreamOnlyIfTheServerRefusedThat(t *testing.T) {
	const stream, list = "?watch=true&sendInitialEvents=true", "?limit=500&resourceVersion=0"
	const lost = -1
	for name, c := range map[string]struct {
		streams []int // how each is answered
		want    bool
	}{
		"none sent":                   {nil, true},
		"not supported":               {[]int{http.StatusUnprocessableEntity}, true},
		"forbidden":                   {[]int{http.StatusForbidden}, true},
		"ended early":                 {[]int{http.StatusOK}, false},
		"unavailable":                 {[]int{http.StatusServiceUnavailable}, false},
		"connection lost":             {[]int{lost}, false},
		"supported since an upgrade":  {[]int{http.StatusUnprocessableEntity, http.StatusOK}, false},
		"no longer supported":         {[]int{http.StatusOK, http.StatusUnprocessableEntity}, true},
		"unavailable, then forbidden": {[]int{http.StatusServiceUnavailable, http.StatusForbidden}, true},
	} {
		t.Run(name, func(t *testing.T) {
			streams, lists := c.streams, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("sendInitialEvents") == "" {
					lists++
					return
				}
				code := streams[0]
				streams = streams[1:]
				if code == lost {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(code)
			}))
			defer server.Close()
			client, err := rest.HTTPClientFor(forInformers(&rest.Config{Host: server.URL}))
			if err != nil {
				t.Fatal(err)
			}
			send := func(path string) error {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := client.Do(request)
				if err == nil {
					answer.Body.Close()
				}
				return err
			}
			for range c.streams {
				_ = send("/foos" + stream)
			}
			if err := send("/foos" + list); (err == nil) != c.want || (lists == 1) != c.want {
				t.Errorf("%d lists were sent, and the error is: %v", lists, err)
			}
			for _, other := range []string{"/bars" + list, "/foos" + list + "&resourceVersionMatch=Exact"} {
				if err := send(other); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
