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
	if err != nil {
		t.Fatal(err)
	}
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

func TestWatchIsOpenedWhateverElseTheServerSays(t *testing.T) {
	for name, answer := range map[string]*apierrors.StatusError{
		"nothing wrong": nil,
		"a timeout":     apierrors.NewTimeoutError("slow", 1),
		"forbidden":     apierrors.NewForbidden(metav1.Unversioned.WithResource("replicasets").GroupResource(), "", nil),
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{answer: answer}
			if err := server.watch(t, metav1.ListOptions{ResourceVersion: "1200"}); err != nil {
				t.Error(err)
			}
			if len(server.lists) != 1 || len(server.watches) != 1 {
				t.Fatalf("%d lists and %d watches", len(server.lists), len(server.watches))
			}
			if got := server.watches[0].Encode(); got != "resourceVersion=1200&watch=true" {
				t.Errorf("the watch became %s", got)
			}
		})
	}
}

func TestNoListIsSentBeforeAWatchThatIsNotResumed(t *testing.T) {
	for name, options := range map[string]metav1.ListOptions{
		"without a version": {},
		"from any version":  {ResourceVersion: "0"},
		"with all objects":  {ResourceVersion: "1200", SendInitialEvents: new(true)},
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{answer: tooLarge()}
			if err := server.watch(t, options); err != nil {
				t.Error(err)
			}
			if len(server.lists) != 0 || len(server.watches) != 1 {
				t.Fatalf("%d lists and %d watches", len(server.lists), len(server.watches))
			}
		})
	}
}

func TestOtherRequestsAreLeftAlone(t *testing.T) {
	server := &apiServer{}
	web := httptest.NewServer(server)
	defer web.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/apis/apps/v1/replicasets?resourceVersion=1200", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := guardWatches(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if len(server.lists) != 1 {
		t.Errorf("%d lists", len(server.lists))
	}
}

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
