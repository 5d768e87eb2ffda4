// SPDX-License-Identifier: Apache-2.0

// Tests of the handlers: which keys events add, and in which order workers get them; and of
// a standby, whose queue is empty.

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/test/footest"
)

func TestAResyncOfChildrenQueuesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		f.drainQueue()

		f.primary.updated(footest.Child("a"), footest.Child("a", footest.Drifted))
		if f.queue.Len() != 0 {
			t.Error("an update without a new resourceVersion queued a Foo")
		}
		f.primary.updated(footest.Child("a"), footest.Child("a", footest.AtVersion("21")))
		if f.queue.Len() != 1 {
			t.Error("an update with a new resourceVersion did not queue its Foo")
		}
		f.drainQueue()

		// No Foo asks for this name, so only the owner reference leads to the Foo.
		f.primary.updated(footest.Child("a", footest.Named("old")), footest.Child("a", footest.Named("old"), footest.WithoutOwner, footest.AtVersion("21")))
		if f.queue.Len() != 1 {
			t.Error("a Foo that lost a child was not queued")
		}
	})
}

func TestMissedDeletionsAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		f.drainQueue()

		f.primary.missDeletion(footest.Namespace + "/web")
		if f.queue.Len() != 1 {
			t.Error("a tombstone of a child without the object queued nothing")
		}
	})
}

func TestWritesOfADeletedFooDelayNothing(t *testing.T) {
	for name, goes := range map[string]func(f *fixture, t *testing.T){
		"deleted": func(f *fixture, t *testing.T) {
			f.deleteFoo(t, "a")
			synctest.Wait()
			footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
			f.createFoo(t, footest.Foo("a"))
		},
		"deleted and recreated": func(f *fixture, t *testing.T) {
			f.updateFoo(t, footest.Foo("a", footest.WithFooUID("uid-new")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"))
				f.wrote(footest.Foo("a"), storeAt("7"), "9")
				goes(f, t)
				synctest.Wait()
				if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); err != nil {
					t.Errorf("a new Foo waits for the writes of a deleted one: %v", err)
				}
			})
		})
	}
}

// The value of an index is a bucket, which also returns other objects.
func TestOthersInTheSameBucketAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := footest.Foo("a")
		f := newFixture(t, one, footest.Child("a"))
		uid := f.sharing(string(one.UID), func(i int) string { return fmt.Sprintf("uid-%d", i) })
		name := f.sharing(footest.Namespace+"/web", func(i int) string { return fmt.Sprintf("%s/web-%d", footest.Namespace, i) })
		other := footest.Foo("b", footest.WithFooUID(types.UID(uid)), footest.WithChildName(strings.TrimPrefix(name, footest.Namespace+"/")))
		footest.Must(t, f.cache.Add(other))
		footest.Must(t, f.primary.cache.Add(footest.Child("b", footest.Named(footest.Primary.Name(other)), footest.WithOwner(samplev1alpha1.SchemeGroupVersion.String(), "Foo", other.UID))))
		controlled := f.primary.namesControlledBy(one)
		if len(controlled) != 1 || controlled[0] != "web" {
			t.Errorf("the Foo is said to control %v", controlled)
		}
		if waiting := f.primary.ownersAskingFor(cache.ObjectName{Namespace: footest.Namespace, Name: "web"}); len(waiting) != 1 {
			t.Errorf("%v are said to ask for the child that one of them asks for", waiting)
		}
	})
}

// sharing returns the first candidate that is in the same bucket as value.
func (f *fixture) sharing(value string, candidate func(int) string) string {
	for i := 0; ; i++ {
		if other := candidate(i); f.buckets.Of(other) == f.buckets.Of(value) {
			return other
		}
	}
}

func TestAFooOfAnotherNamespaceDoesNotWaitForAThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range 1000 {
			f.queue.Add(cache.ObjectName{Namespace: "many", Name: fmt.Sprint(i)})
		}
		f.queue.Add(cache.ObjectName{Namespace: "one", Name: "only"})
		f.queue.Get()
		second, _ := f.queue.Get()
		if second.Namespace != "one" {
			t.Errorf("%s is served first", second)
		}
	})
}

// next returns the name of the Foo that a worker gets next, or "" if there is none.
func (f *fixture) next() string {
	if f.queue.Len() == 0 {
		return ""
	}
	key, _ := f.queue.Get()
	f.queue.Done(key)
	return key.Name
}

func TestANewFooDoesNotWaitForThoseOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b"), footest.Child("a"), footest.Child("b", footest.Named("api")))
		f.createFoo(t, footest.Foo("new", footest.WithChildName("db")))
		synctest.Wait()
		if first := f.next(); first != "new" {
			t.Errorf("%s is served first", first)
		}
	})
}

func TestAChangeDoesNotWaitForAResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("api")))
		f.drainQueue()
		resynced := f.cachedFoo(t, "a")
		f.updateOwner(resynced, resynced)
		footest.Must(t, f.kubeClient.Tracker().Create(footest.Primary.Resource, footest.Child("b", footest.Named("api")), footest.Namespace))
		synctest.Wait()
		if first := f.next(); first != "b" {
			t.Errorf("%s is served first", first)
		}
		if second := f.next(); second != "a" {
			t.Errorf("%s is served next", second)
		}
	})
}

func TestAFooThatWasSyncedWaitsAtTheNextResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("api")))
		for f.queue.Len() > 0 {
			f.processNextWorkItem(f.ctx)
			synctest.Wait()
		}
		resynced := f.cachedFoo(t, "a")
		f.updateOwner(resynced, resynced)
		f.queue.Add(footest.KeyOf(footest.Foo("b")))
		if first := f.next(); first != "b" {
			t.Errorf("%s is served first", first)
		}
	})
}

// If a Foo can't be decoded, the list fails, and the informer has no Foos at all.
func TestAnInformerListsAFooWhoseStatusCantBeRead(t *testing.T) {
	const foos = `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"FooList","metadata":{"resourceVersion":"7"},"items":[` +
		`{"metadata":{"name":"a","namespace":"team-a"},"spec":{}},` +
		`{"metadata":{"name":"b","namespace":"team-a"},"spec":{},"status":{"availableReplicas":1099511627776,"conditions":[` +
		`{"type":"Ready","status":"True","reason":"Available","message":"","lastTransitionTime":"2026-11-21t12:00:00z"}]}},` +
		`{"metadata":{"name":"c","namespace":"team-a"},"spec":{}}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusServiceUnavailable) // so that it lists
			return
		case query.Get("watch") != "":
			<-r.Context().Done() // without events
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
		t.Fatalf("the informer does not sync: %v", err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := lister.Foos(footest.Namespace).Get(name); err != nil {
			t.Error(err)
		}
	}
}

// standBy makes a controller that does not run yet, and runs its informers until ctx
// ends. The function that it returns waits for their end.
func standBy(ctx context.Context, t *testing.T, foos ...runtime.Object) (*kubefake.Clientset, *Controller, func()) {
	t.Helper()
	kubeClient, fooClient := kubefake.NewClientset(), fakeFooClient(t, foos...)
	kubeInformers := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(fooClient, 0)
	controller, err := NewController(Config{
		KubeClient: kubeClient, FooClient: fooClient, KubeInformers: kubeInformers, FooInformers: fooInformers,
		Recorder: record.NewFakeRecorder(100), Clock: clock.RealClock{}, CallTimeout: time.Minute, Metrics: metrics.New(),
	}, plan.Foos(footest.DefaultImage))
	footest.Must(t, err)
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	return kubeClient, controller, func() {
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}
}

// The queue of a standby is empty. The handlers fill it when the standby becomes the
// leader.
func TestBeforeItRunsNothingIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		kubeClient, controller, shutdown := standBy(ctx, t, footest.Foo("a"))
		advance(time.Hour)
		if queued := controller.queue.Len(); queued != 0 {
			t.Errorf("%d Foos are queued", queued)
		}

		stopped := make(chan error)
		go func() { stopped <- controller.Run(ctx, context.Background(), 2) }()
		advance(time.Second)
		if _, err := kubeClient.Tracker().Get(footest.Primary.Resource, footest.Namespace, "web"); err != nil {
			t.Errorf("running as the leader: %v", err)
		}
		stop()
		footest.Must(t, <-stopped)
		shutdown()
	})
}

// A stop may come just after the caches have synced. Informers that have stopped accept
// no handlers. That is no error, and nothing keeps running.
func TestAStopBeforeTheHandlersIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		_, controller, shutdown := standBy(ctx, t)
		advance(time.Second)
		stop()
		shutdown()
		footest.Must(t, controller.Run(ctx, context.Background(), 2))
	})
}
