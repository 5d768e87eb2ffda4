// SPDX-License-Identifier: Apache-2.0

// Tests of the order in which workers get keys.

package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func key(text string) cache.ObjectName {
	namespace, name, _ := strings.Cut(text, "/")
	return cache.ObjectName{Namespace: namespace, Name: name}
}

func expectEqual(t *testing.T, what string, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// work is a queue used as in a controller.
type work struct{ *Queue }

func newWork(t *testing.T) work {
	t.Helper()
	w := work{New("", clocktesting.NewFakeClock(time.Unix(0, 0)))}
	t.Cleanup(w.ShutDown)
	return w
}

func (w work) changed(keys ...string) {
	for _, changed := range keys {
		w.Add(key(changed))
	}
}

func (w work) resynced(keys ...string) {
	for _, resynced := range keys {
		w.AddLowPriority(key(resynced))
	}
}

func (w work) get() string {
	key, _ := w.Get()
	return key.String()
}

func (w work) done(done string) { w.Done(key(done)) }

// drain returns the keys that a worker gets, in order.
func (w work) drain() (got []string) {
	for w.Len() > 0 {
		next := w.get()
		w.done(next)
		got = append(got, next)
	}
	return got
}

// expectEmpty fails the test if an idle queue still holds anything.
func (q *fairQueue) expectEmpty(t *testing.T) {
	t.Helper()
	if len(q.order[high])+len(q.order[low])+q.announced.Len()+q.Len()+len(q.syncs)+len(q.namespaces) != 0 ||
		q.running+q.returning+q.handedOver+q.idle != 0 || q.now != 0 {
		t.Errorf("the queue still holds %+v", q)
	}
}

// many returns keys of a namespace.
func many(namespace string, count int) (keys []string) {
	for i := range count {
		keys = append(keys, fmt.Sprint(namespace, "/", i))
	}
	return keys
}

func TestTheOrderOfKeys(t *testing.T) {
	for name, row := range map[string]struct {
		add  func(w work)
		want []string
	}{
		"one namespace is first in, first out": {
			func(w work) { w.changed("a/1", "a/2", "a/3") }, []string{"a/1", "a/2", "a/3"}},
		"a single key waits for one key of each other namespace": {
			func(w work) { w.changed("a/1", "a/2", "a/3", "b/1", "b/2", "c/1") },
			[]string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}},
		"a key that is added again keeps its place": {
			func(w work) { w.changed("a/1", "a/2", "a/1", "b/1", "a/1") }, []string{"a/1", "b/1", "a/2"}},
		"low priority is last": {func(w work) {
			w.resynced("a/old-1", "a/old-2", "b/old")
			w.changed("a/new-1", "a/new-2", "c/new")
		}, []string{"a/new-1", "c/new", "a/new-2", "a/old-1", "b/old", "a/old-2"}},
		"a change raises the priority, and a second resync does not": {func(w work) {
			w.resynced("a/1", "a/2", "a/3")
			w.changed("a/2")
			w.resynced("a/3")
			expectEqual(t, "how many wait", 3, w.Len())
		}, []string{"a/2", "a/1", "a/3"}},
		"a change of the last key of low priority": {func(w work) {
			w.resynced("a/1", "a/2")
			w.changed("a/2")
		}, []string{"a/2", "a/1"}},
		"a resync does not lower the priority": {func(w work) {
			w.resynced("a/old")
			w.changed("a/1")
			w.resynced("a/1")
		}, []string{"a/1", "a/old"}},
		"a resync that comes late counts for no other turn": {func(w work) {
			w.changed("a/1")
			w.resynced("a/1")
			w.done(w.get())
			w.resynced("a/old")
			w.changed("a/1")
		}, []string{"a/1", "a/old"}},
		"a key that has been processed waits at the next resync": {func(w work) {
			w.changed("a/1")
			w.done(w.get())
			w.resynced("a/1")
			w.changed("a/2")
		}, []string{"a/2", "a/1"}},
		"nothing": {func(work) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			row.add(w)
			expectEqual(t, "the order", row.want, w.drain())
			w.fair.expectEmpty(t)
		})
	}
}

func TestLowPriorityDoesNotWaitForEver(t *testing.T) {
	w := newWork(t)
	w.resynced("a/1", "a/2")
	w.changed(many("b", 3*inARow)...)
	got := w.drain()
	expectEqual(t, "the low-priority keys", []string{"a/1", "a/2"}, []string{got[inARow], got[2*inARow+1]})
}

// The work queue does not report additions of a key while it is processed: they arrive as a
// single Push at the end.
func TestAKeyThatChangesWhileItIsProcessedNeedNotWait(t *testing.T) {
	for name, during := range map[string]func(w work){
		"a change, then a resync": func(w work) {
			w.changed("x/a")
			w.resynced("x/a")
		},
		"a resync, then a change": func(w work) {
			w.resynced("x/a")
			w.changed("x/a")
		},
		"a resync that was announced before a worker took the key": func(w work) {
			w.done("x/a")
			w.changed("x/a")
			w.fair.setLowPriority(key("x/a"))
			w.get()
			w.changed("x/a")
		},
		"another worker has taken it when the first has ended": func(w work) {
			w.changed("x/a")
			first := w.fair.syncs[key("x/a")]
			w.TypedDelayingInterface.Done(key("x/a"))
			w.get()
			w.fair.end(key("x/a"), first)
			w.changed("x/a")
			w.resynced("x/a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.resynced(many("x", 100)...)
			w.changed("x/a")
			w.get()
			during(w)
			w.done("x/a")
			expectEqual(t, "the next key", "x/a", w.get())
		})
	}
}
