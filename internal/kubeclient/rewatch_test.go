// SPDX-License-Identifier: Apache-2.0

// Tests of watches that are resumed after a restore of etcd, and of the first list.

package kubeclient

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
)

// watch watches ReplicaSets with the client of the informers. It returns the queries of the
// lists and of the watches that the server got.
func (f *fakeServer) watch(options metav1.ListOptions) (lists, watches []string, err error) {
	watcher, err := f.clients.KubeInformers.AppsV1().ReplicaSets("team-a").Watch(f.ctx, options)
	if err == nil {
		watcher.Stop()
	}
	for i, request := range f.requests {
		if request == listReplicaSets {
			lists = append(lists, f.queries[i])
		} else {
			watches = append(watches, f.queries[i])
		}
	}
	return lists, watches, err
}

func tooLarge() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("Too large resource version: 1200, current: 1000", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func TestWatchFromAVersionThatTheServerDoesNotKnowIsRefused(t *testing.T) {
	run(t, func(t *testing.T, f *fakeServer) {
		f.answer(answers{listReplicaSets: tooLarge()})
		began := time.Now()
		lists, watches, err := f.watch(metav1.ListOptions{
			ResourceVersion: "1200", FieldSelector: "metadata.name=a", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(300)),
		})
		// This cause makes client-go's reflector relist.
		if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("the watch ended with %v", err)
		}
		want := []string{"fieldSelector=metadata.name%3Da&limit=1&resourceVersion=1200&resourceVersionMatch=NotOlderThan"}
		if !slices.Equal(lists, want) || len(watches) > 0 || time.Since(began) > 0 {
			t.Errorf("in %v the server got the watches %v and the lists %v, want only %v at once", time.Since(began), watches, lists, want)
		}
	})
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
			run(t, func(t *testing.T, f *fakeServer) {
				if row.answer != nil {
					f.answer(answers{listReplicaSets: row.answer})
				}
				lists, watches, err := f.watch(row.options)
				footest.Must(t, err)
				if len(lists) != row.lists || !slices.Equal(watches, []string{row.watch}) {
					t.Errorf("there were %d lists, and the watches %v", len(lists), watches)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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
			server := roundTripper(func(r *http.Request) (*http.Response, error) {
				code := http.StatusOK
				if r.URL.Query().Get("sendInitialEvents") == "" {
					lists++
				} else {
					code, streams = streams[0], streams[1:]
				}
				if code == lost {
					return nil, io.ErrUnexpectedEOF
				}
				return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody}, nil
			})
			client, err := rest.HTTPClientFor(forInformers(&rest.Config{Transport: server}))
			footest.Must(t, err)
			send := func(path string) error {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster"+path, nil)
				footest.Must(t, err)
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
