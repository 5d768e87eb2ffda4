// SPDX-License-Identifier: Apache-2.0

// Tests of watches that are resumed after a restore of etcd, and of the first list.

package kubeclient

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer answers every list with answer, or with an empty list if that is nil. Its
// watches have no events.
type apiServer struct {
	answer  *apierrors.StatusError
	lists   []url.Values
	watches []url.Values
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("watch") != "" {
		s.watches = append(s.watches, query)
		return
	}
	s.lists = append(s.lists, query)
	w.Header().Set("Content-Type", "application/json")
	if s.answer == nil {
		_, _ = w.Write([]byte(`{"kind":"ReplicaSetList","apiVersion":"apps/v1","items":[]}`))
		return
	}
	s.answer.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(int(s.answer.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(s.answer.ErrStatus)
}

// watch watches ReplicaSets with the client of the informers.
func (s *apiServer) watch(t *testing.T, options metav1.ListOptions) error {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	clients, err := New(&rest.Config{Host: server.URL}, 2, 0)
	must(t, err)
	watcher, err := clients.KubeInformers.AppsV1().ReplicaSets("ns").Watch(t.Context(), options)
	if err == nil {
		watcher.Stop()
	}
	return err
}

func tooLarge() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("Too large resource version: 1200, current: 1000", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func TestWatchFromAVersionThatTheServerDoesNotKnowIsRefused(t *testing.T) {
	server, began := &apiServer{answer: tooLarge()}, time.Now()
	err := server.watch(t, metav1.ListOptions{
		ResourceVersion: "1200", FieldSelector: "metadata.name=a", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(300)),
	})
	// This cause makes client-go's reflector relist.
	if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("the watch ended with %v", err)
	}
	if len(server.watches) > 0 {
		t.Error("the watch was opened nevertheless")
	}
	if len(server.lists) != 1 || time.Since(began) >= time.Second {
		t.Fatalf("%d lists were sent, in %v", len(server.lists), time.Since(began))
	}
	want := "fieldSelector=metadata.name%3Da&limit=1&resourceVersion=1200&resourceVersionMatch=NotOlderThan"
	if got := server.lists[0].Encode(); got != want {
		t.Errorf("the list's query is %s, not %s", got, want)
	}
}

// A list is sent before a watch that is resumed, and no other answer keeps that from being
// opened as it is.
func TestOtherWatchesAreOpened(t *testing.T) {
	resumed := metav1.ListOptions{ResourceVersion: "1200"}
	withAll := metav1.ListOptions{ResourceVersion: "1200", SendInitialEvents: new(true)}
	forbidden := apierrors.NewForbidden(metav1.Unversioned.WithResource("replicasets").GroupResource(), "", nil)
	for name, row := range map[string]struct {
		options metav1.ListOptions
		answer  *apierrors.StatusError
		lists   int
		watch   string
	}{
		"nothing wrong":     {resumed, nil, 1, "resourceVersion=1200&watch=true"},
		"a timeout":         {resumed, apierrors.NewTimeoutError("slow", 1), 1, "resourceVersion=1200&watch=true"},
		"forbidden":         {resumed, forbidden, 1, "resourceVersion=1200&watch=true"},
		"without a version": {metav1.ListOptions{}, tooLarge(), 0, "watch=true"},
		"from any version":  {metav1.ListOptions{ResourceVersion: "0"}, tooLarge(), 0, "resourceVersion=0&watch=true"},
		"with all objects":  {withAll, tooLarge(), 0, "resourceVersion=1200&sendInitialEvents=true&watch=true"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{answer: row.answer}
			must(t, server.watch(t, row.options))
			if len(server.lists) != row.lists || len(server.watches) != 1 {
				t.Fatalf("%d lists and %d watches", len(server.lists), len(server.watches))
			}
			if got := server.watches[0].Encode(); got != row.watch {
				t.Errorf("the watch became %s", got)
			}
		})
	}
}

func TestAListFollowsAStreamOnlyIfTheServerRefusedThat(t *testing.T) {
	const stream, list = "?watch=true&sendInitialEvents=true", "?limit=500&resourceVersion=7"
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
			must(t, err)
			send := func(path string) error {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
				must(t, err)
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
			others := []string{"/bars" + list, "/foos" + list + "&resourceVersionMatch=Exact", "/foos?watch=true&resourceVersion=1"}
			for _, other := range others {
				if err := send(other); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
