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

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/footest"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// A list with a Foo that can't be read is an error for an informer, which then knows nothing of any Foo.
func TestAnInformerListsAFooWhoseStatusCantBeRead(t *testing.T) {
	const foos = `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"FooList","metadata":{"resourceVersion":"7"},"items":[` +
		`{"metadata":{"name":"a","namespace":"team-a"},"spec":{"deploymentName":"web"}},` +
		`{"metadata":{"name":"b","namespace":"team-a"},"spec":{"deploymentName":"api"},"status":{"availableReplicas":1099511627776,"conditions":[` +
		`{"type":"Ready","status":"True","reason":"Available","message":"","lastTransitionTime":"2026-11-21t12:00:00z"}]}},` +
		`{"metadata":{"name":"c","namespace":"team-a"},"spec":{"deploymentName":"db"}}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusServiceUnavailable) // it lists instead
			return
		case query.Get("watch") != "":
			<-r.Context().Done() // nothing happens
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, foos)
	}))
	defer server.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	footest.Must(t, err)
	factory := fooinformers.NewSharedInformerFactory(client, 0)
	informer, lister := factory.Samplecontroller().V1alpha1().Foos().Informer(), factory.Samplecontroller().V1alpha1().Foos().Lister()
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer stop()
	failed := make(chan error, 1)
	footest.Must(t, informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		select {
		case failed <- err:
		default:
		}
	}))
	factory.StartWithContext(ctx)
	select {
	case <-informer.HasSyncedChecker().Done():
	case err := <-failed:
		t.Fatalf("the informer stands still: %v", err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := lister.Foos(footest.Namespace).Get(name); err != nil {
			t.Error(err)
		}
	}
}
