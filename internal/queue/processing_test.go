// SPDX-License-Identifier: Apache-2.0

// Tests of keys that are added while they are processed.

package queue

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

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
