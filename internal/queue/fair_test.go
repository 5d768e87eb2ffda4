// SPDX-License-Identifier: Apache-2.0

// Tests of the order in which workers get keys.

package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
)

// still is a clock that stands still.
var still = clocktesting.NewFakePassiveClock(time.Unix(0, 0))

// order adds keys, each "namespace/name", to a work queue and returns them in the order
// in which a worker gets them.
func order(keys ...string) []string {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Queue: newFairQueue(still)})
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		queue.Add(cache.ObjectName{Namespace: namespace, Name: name})
	}
	var got []string
	for queue.Len() > 0 {
		key, _ := queue.Get()
		queue.Done(key)
		got = append(got, key.String())
	}
	return got
}

func TestNamespacesTakeTurns(t *testing.T) {
	for name, row := range map[string]struct{ added, want []string }{
		"one namespace is first in, first out": {
			[]string{"a/1", "a/2", "a/3"}, []string{"a/1", "a/2", "a/3"}},
		"a single key waits for one key of each other namespace": {
			[]string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}, []string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}},
		"a key that is added again keeps its place": {
			[]string{"a/1", "a/2", "a/1", "b/1", "a/1"}, []string{"a/1", "b/1", "a/2"}},
		"nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := order(row.added...); !slices.Equal(got, row.want) {
				t.Errorf("got %v, not %v", got, row.want)
			}
		})
	}
}

func TestANamespaceThatComesLateIsServedNext(t *testing.T) {
	q := newFairQueue(still)
	for i := range 5000 {
		q.Push(cache.ObjectName{Namespace: "many", Name: fmt.Sprint(i)})
	}
	q.Pop()
	q.Push(cache.ObjectName{Namespace: "one", Name: "only"})
	q.Pop() // one key of "many", which came first
	if got := q.Pop(); got.Namespace != "one" {
		t.Errorf("%s was served first", got)
	}
	if q.Len() != 4998 {
		t.Errorf("%d keys are left, not 4998", q.Len())
	}
}

func key(text string) cache.ObjectName {
	namespace, name, _ := strings.Cut(text, "/")
	return cache.ObjectName{Namespace: namespace, Name: name}
}

// drained returns the keys that a worker gets, in order.
func drained(q *fairQueue) []string {
	var got []string
	for q.Len() > 0 {
		got = append(got, q.Pop().String())
	}
	return got
}

func TestLowPriorityIsServedLast(t *testing.T) {
	q := newFairQueue(still)
	for _, waits := range []string{"a/old-1", "a/old-2", "b/old"} {
		q.setLowPriority(key(waits))
		q.Push(key(waits))
	}
	for _, hurries := range []string{"a/new-1", "a/new-2", "c/new"} {
		q.Push(key(hurries))
	}
	want := []string{"a/new-1", "c/new", "a/new-2", "a/old-1", "b/old", "a/old-2"}
	if got := drained(q); !slices.Equal(got, want) {
		t.Errorf("got %v, not %v", got, want)
	}
}

func TestLowPriorityDoesNotWaitForEver(t *testing.T) {
	q := newFairQueue(still)
	for _, waits := range []string{"a/1", "a/2"} {
		q.setLowPriority(key(waits))
		q.Push(key(waits))
	}
	for i := range 3 * inARow {
		q.Push(key(fmt.Sprint("b/", i)))
	}
	got := drained(q)
	if first, second := slices.Index(got, "a/1"), slices.Index(got, "a/2"); first != inARow || second != 2*inARow+1 {
		t.Errorf("the low-priority keys are served after %d and %d others", first, second)
	}
}

func TestAChangeRaisesThePriority(t *testing.T) {
	q := newFairQueue(still)
	for _, waits := range []string{"a/1", "a/2", "a/3"} {
		q.setLowPriority(key(waits))
		q.Push(key(waits))
	}
	q.Touch(key("a/2"))
	q.setLowPriority(key("a/3")) // as a second resync does
	q.Touch(key("a/3"))
	if q.Len() != 3 {
		t.Errorf("%d keys are waiting, not 3", q.Len())
	}
	if got, want := drained(q), []string{"a/2", "a/1", "a/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, not %v", got, want)
	}
}

func TestAResyncDoesNotLowerThePriority(t *testing.T) {
	q := newFairQueue(still)
	q.Push(key("a/1"))
	q.setLowPriority(key("a/1"))
	q.Touch(key("a/1"))
	q.Pop()
	q.Push(key("a/1"))
	if q.waiting.Len() > 0 {
		t.Error("the priority of the key also counts for its next turn")
	}
}

func TestNothingIsKeptOfDeletedKeys(t *testing.T) {
	q := newFairQueue(still)
	for i := range 100 {
		waits := cache.ObjectName{Namespace: fmt.Sprint(i), Name: "a"}
		q.setLowPriority(waits)
		q.Push(waits)
		q.Touch(waits)
		q.setLowPriority(waits)
		q.Pop()
		q.setLowPriority(waits)
		q.Push(waits)
		q.Pop()
		q.Done(waits)
		q.Done(waits)
	}
	if len(q.high.byNamespace)+len(q.low.byNamespace)+len(q.high.turns)+len(q.low.turns)+q.announced.Len()+len(q.processing)+q.Len() != 0 {
		t.Errorf("the queue still holds %+v", q)
	}
}

// work is a work queue with the fair storage, as a controller uses it.
type work struct {
	storage *fairQueue
	queue   *workqueue.Typed[cache.ObjectName]
}

func newWork() *work {
	storage := newFairQueue(still)
	return &work{storage, workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Queue: storage})}
}

func (w *work) changed(key cache.ObjectName) { w.queue.Add(key) }

func (w *work) resynced(key cache.ObjectName) {
	w.storage.setLowPriority(key)
	w.queue.Add(key)
}

func (w *work) get() cache.ObjectName {
	key, _ := w.queue.Get()
	return key
}

func (w *work) done(key cache.ObjectName) {
	w.queue.Done(key)
	w.storage.Done(key)
}

// The work queue does not report additions of a key while it is processed: they come as a
// single Push at the end.
func TestAKeyThatChangesWhileItIsProcessedNeedNotWait(t *testing.T) {
	a := key("x/a")
	for name, during := range map[string]func(w *work){
		"a change, then a resync": func(w *work) {
			w.changed(a)
			w.get()
			w.changed(a)
			w.resynced(a)
			w.done(a)
		},
		"a resync, then a change": func(w *work) {
			w.changed(a)
			w.get()
			w.resynced(a)
			w.changed(a)
			w.done(a)
		},
		"a resync that was announced before a worker took the key": func(w *work) {
			w.changed(a)
			w.storage.setLowPriority(a)
			w.get()
			w.queue.Add(a)
			w.changed(a)
			w.done(a)
		},
		"another worker has taken it when the first has ended": func(w *work) {
			w.changed(a)
			w.get()
			w.changed(a)
			w.queue.Done(a)
			w.get()
			w.storage.Done(a) // of the first turn
			w.changed(a)
			w.resynced(a)
			w.done(a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork()
			for i := range 100 {
				w.resynced(cache.ObjectName{Namespace: "x", Name: fmt.Sprint(i)})
			}
			during(w)
			if first := w.get(); first != a {
				t.Errorf("%s, which has not changed, is served first", first)
			}
		})
	}
}

func TestAKeyThatHasBeenProcessedWaitsAtTheNextResync(t *testing.T) {
	w := newWork()
	a, b := key("x/a"), key("x/b")
	w.changed(a)
	w.done(w.get())
	w.resynced(a)
	w.changed(b)
	if first := w.get(); first != b {
		t.Errorf("%s, which has not changed, is served first", first)
	}
}

// TestAQueueKnowsWhoHasChanged asks the whole work queue.
func TestAQueueKnowsWhoHasChanged(t *testing.T) {
	q := New("", clocktesting.NewFakeClock(time.Unix(0, 0)))
	defer q.ShutDown()
	q.SetWorkers(1)
	a, b := key("x/a"), key("y/b")
	get := func(want cache.ObjectName) {
		t.Helper()
		if got, _ := q.Get(); got != want {
			t.Errorf("%s is served, want %s", got, want)
		}
	}
	q.AddLowPriority(a)
	if !q.HasWaiting("x") || q.HasWaiting("y") {
		t.Error("a key of low priority does not wait, or one of another namespace does")
	}
	q.Add(b)
	if !q.HasWaiting("y") {
		t.Error("a key does not wait")
	}
	get(b)
	q.Done(b)
	get(a)
	q.Done(a)
	if q.HasWaiting("x") || q.HasWaiting("y") {
		t.Error("what is done waits")
	}
	q.Add(a) // a change, after a resync
	q.AddLowPriority(b)
	get(a)
	q.Done(a)
	get(b)
	q.Done(b)
	q.AddLowPriority(a) // a resync, after a change
	q.Add(b)
	get(b)
	q.Done(b)
	get(a)
	q.Done(a)
}
