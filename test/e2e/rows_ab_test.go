// SPDX-License-Identifier: Apache-2.0

// Rows A: a controller that crashes, is stopped or frozen. Rows B: stale caches, and watches
// that end, repeat or lose events.

package e2e

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

var rowsA = []*scenario{
	{row: "A1", title: "crash before or after a write", quick: 10, cases: eachWrite(
		breakage{"crash before", func(r *replica, _ <-chan struct{}) proxy.Fault { return r.crashAtCall }},
		breakage{"crash after", func(r *replica, _ <-chan struct{}) proxy.Fault { return proxy.Done(r.crashAtCall) }},
	)},
	{row: "A2", title: "a write succeeds, but its response is lost",
		quick: 6, cases: eachWrite(always("reply lost", proxy.Done(proxy.Cut)))},
	{row: "A3", title: "a write is cut off and arrives after it was repeated", quick: 6, cases: eachWrite(
		breakage{"delayed", func(_ *replica, recovered <-chan struct{}) proxy.Fault {
			return proxy.CutAndLater(recovered)
		}})},
	{row: "A4", title: "SIGTERM during a write: the write finishes, unless a second signal follows",
		quick: 3, cases: []trialCase{
			{name: "an Event under way", run: (*trial).stoppedWithEvent},
			{name: "a create under way", run: func(tr *trial) { tr.stopped(syscall.SIGTERM, false) }},
			{name: "a second signal", run: func(tr *trial) { tr.stopped(syscall.SIGINT, true) }},
		},
		why: "Run does not wait for its workers"},
	{row: "A5", title: "the controller is killed while its caches fill: it writes nothing before they are full",
		quick: 2, cases: []trialCase{
			{name: "the foos are late", run: func(tr *trial) { tr.lateCache("foos") }},
			{name: "the deployments are late", run: func(tr *trial) { tr.lateCache("deployments") }},
		}},
	{row: "A6", title: "the process is frozen while objects change", quick: 1, cases: one("for a while", func(tr *trial) {
		r := tr.start()
		tr.createFoo("a", "one", 1)
		tr.settledFoo("b", "b", 1)
		r.signal(syscall.SIGSTOP)
		tr.scaleFoo("a", 3)
		tr.deleteDeployment("b")
		tr.createFoo("c", "c", 2)
		tr.awaitGone("b")
		r.signal(syscall.SIGCONT)
	})},
}

// crashAtCall is the fault of a controller that is killed during a call.
func (r *replica) crashAtCall(x *proxy.Exchange) {
	r.crash()
	proxy.Cut(x)
}

// A4.
func (tr *trial) stopped(signal syscall.Signal, again bool) {
	r := tr.start()
	open := tr.holdNext(r, isCreate, proxy.Forward, func() { tr.createFoo("a", "a", 1) })
	r.signal(signal)
	tr.awaitLog(r, map[bool]string{true: "Shutting down workers", false: stopping}[tr.subject.isUpstream], 1)
	if again {
		r.signal(signal)
		tr.mustExit(r, "after the second signal", 1)
	} else {
		open()
		tr.mustExit(r, "after SIGTERM", 0)
		if len(r.made(isCreate, succeeded)) == 0 {
			tr.failf("after SIGTERM, it dropped the write in progress")
		}
	}
	tr.must(r.start())
}

// A4: what a sync has reported is written, although the sync is over.
func (tr *trial) stoppedWithEvent() {
	r := tr.start()
	open := tr.holdNext(r, isEvent, proxy.Forward, func() { tr.createFoo("a", "a", 1) })
	r.signal(syscall.SIGTERM)
	if r.current().Wait(quiet) {
		tr.failf("after SIGTERM, it ended while an Event was being written")
	}
	open()
	tr.mustExit(r, "after SIGTERM", 0)
	if len(r.made(isEvent, succeeded)) == 0 {
		tr.failf("after SIGTERM, it lost an Event")
	}
	tr.must(r.start())
}

// A5: the events of one resource are held while the controller starts twice.
func (tr *trial) lateCache(resource string) {
	r := tr.startWithFoo("a", 1)
	r.kill()
	tr.scaleFoo("a", 2)
	tr.createFoo("b", "b", 1)
	release := r.proxy.HoldEvents(resource)
	for range 2 {
		r.crash()
		tr.mustNotWrite(func() { tr.pause(quiet) }) // it has no work yet that a fence could be behind
	}
	release()
}

var rowsB = []*scenario{
	{row: "B1", title: "the cache lacks the controller's own create: no second create",
		quick: 1, cases: one("own create unseen", func(tr *trial) {
			r := tr.start()
			tr.settledFoo("other", "other", 1)
			release := r.proxy.HoldEvents("deployments")
			tr.createFoo("a", "a", 1)
			tr.awaitCalls(r, 2, isCreate, succeeded)
			tr.scaleFoo("a", 3)
			tr.letAct()
			release()
			tr.stableAndQuiet()
			if creates := r.made(isCreate, succeeded); len(creates) != 2 {
				tr.failf("it created %d Deployments for two Foos", len(creates))
			}
		})},
	{row: "B2", title: "the cached Foo is older than the last one reconciled: it does not overwrite the newer spec",
		quick: 1, cases: one("beside one that is up to date", func(tr *trial) {
			// Another controller has reconciled the newer Foo.
			stale := tr.start()
			tr.startWithFoo("a", 2)
			release := stale.proxy.HoldEvents("foos")
			before := len(stale.made(isUpdate, succeeded))
			tr.scaleFoo("a", 4)
			tr.awaitReplicas("a", 4)
			tr.annotate("a", "seen")
			tr.pause(quiet) // it sees no Foo, so no fence either
			if len(stale.made(isUpdate, succeeded)) > before {
				tr.failf("it overwrote the Foo's new replicas with the old ones")
			}
			release()
		}),
		why: "it sends Updates without a resourceVersion, however stale its cache"},
	{row: "B3", title: "the Deployment of a deleted Foo of the same name still exists",
		// The API server does not serve this version, so the garbage collector ignores the owner.
		quick: 1, exempt: true, cases: one("of the same name", func(tr *trial) {
			tr.foreignOwner("samplecontroller.k8s.io/v1beta1")
		})},
	{row: "B4", title: "a Foo is deleted and recreated while no garbage collector runs: it is not stalled, and ready in the end",
		breaksPlane: true, cases: one("controller manager killed", func(tr *trial) {
			// Without a made-up owner: nothing deletes what a deleted Foo leaves behind.
			tr.startWithFoo("a", 1)
			old := tr.deployment("a")
			tr.plane.Kill(testcluster.ControllerManager)
			tr.deleteFoo("a", metav1.DeletePropagationBackground)
			tr.createFoo("a", "a", 3)
			tr.expected.refused["a"] = samplev1alpha1.ReasonProgressing
			tr.awaitReported("a", "waits for the garbage collector")
			tr.letAct()
			now := tr.deployment("a")
			if conditions := tr.foo("a").Status.Conditions; meta.IsStatusConditionTrue(conditions, samplev1alpha1.ConditionStalled) {
				tr.failf("the Foo is stalled although nobody has to act: %+v", conditions)
			}
			delete(tr.expected.refused, "a")
			tr.must(tr.plane.Start(tr.ctx, testcluster.ControllerManager))
			if now.UID != old.UID || now.Generation != old.Generation {
				tr.failf("it changed the Deployment of a deleted Foo")
			}
		})},
	{row: "B5", title: "restart against a stale API server: its old data causes no update or deletion",
		quick: 2, why: "as B2", cases: []trialCase{
			{name: "scaled since", run: func(tr *trial) { tr.staleServer(func() { tr.scaleFoo("a", 3) }) }},
			{name: "renamed since", needs: "rename", run: func(tr *trial) {
				tr.staleServer(func() { tr.renameDeployment("a", "two") })
			}},
		}},
	{row: "B6", title: "a DELETED event is lost, and a relist follows",
		quick: 1, cases: one("the Deployment's", func(tr *trial) {
			r := tr.startWithFoo("a", 1)
			lost := make(chan struct{}, 1)
			r.proxy.EditEvents(func(_ context.Context, e proxy.Event) [][]byte {
				if e.Type == "DELETED" {
					lost <- struct{}{}
					return nil
				}
				return e.Times(1)
			})
			tr.must(tr.deployments().Delete(tr.ctx, "a", metav1.DeleteOptions{}))
			tr.await("the event is lost", func(context.Context) error {
				if len(lost) == 0 {
					return errors.New("it is not yet")
				}
				return nil
			})
			r.proxy.EditEvents(nil)
			r.proxy.Use(first(1, attempted("deployments", "watch")), proxy.Refuse(http.StatusGone))
			r.proxy.EndWatches("deployments")
		})},
	{row: "B7", title: "each watch ends with 410 Gone", quick: 2, cases: eachWorkload(func(tr *trial, w *workload) {
		// The watches end, objects change, and new watches from the old resourceVersion are refused.
		r := w.prepare(tr)
		continued := func(call *proxy.Call) bool { return call.IsWatch() && !call.SendsInitial }
		defer r.proxy.Use(continued, proxy.Refuse(http.StatusGone))()
		r.proxy.EndWatches("")
		w.act(tr)
	})},
	{row: "B8", title: "a connection and its watches silently go dead",
		quick: 1, cases: one("silent", func(tr *trial) {
			// Nothing sent over the open connections arrives any more.
			tr.timeout, tr.http2 = 2*waitTimeout, true
			r := tr.prepare()
			// By default, client-go pings a connection that is silent for 30 s, and closes it after 15 s more.
			r.env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"}
			tr.must(r.start())
			tr.settledFoo("a", "a", 1)
			r.proxy.Silence()
			tr.scaleFoo("a", 3)
		})},
	{row: "B8", title: "without HTTP/2, connections and their watches silently go dead: noticed within a minute",
		quick: 1, cases: one("silent, over HTTP/1.1", func(tr *trial) {
			r := tr.startWithFoo("a", 1)
			r.proxy.Silence()
			tr.timeout = time.Minute // the promised 45 s, and what a busy machine needs
			tr.scaleFoo("a", 3)
			tr.awaitReplicas("a", 3)
		}), why: "client-go has pings with HTTP/2 only, and no bound for how long a watch is silent"},
	{row: "B9", title: "each event is sent twice", quick: 2, cases: throughout(func(r *replica) {
		r.proxy.EditEvents(func(_ context.Context, e proxy.Event) [][]byte { return e.Times(2) })
	})},
	{row: "B10", title: "deploymentName changes and reverts before the controller sees it",
		quick: 1, cases: []trialCase{{name: "unseen", run: func(tr *trial) {
			r := tr.startWithFoo("one", 1)
			release := r.proxy.HoldEvents("foos")
			tr.renameDeployment("a", "two")
			tr.renameDeployment("a", "one")
			release()
		}, needs: "rename"}}},
}

// B3 and C13: the Deployment has a Foo of the same name as its owner, but of another UID and
// another version or group.
func (tr *trial) foreignOwner(apiVersion string) {
	tr.start()
	tr.protect(tr.createDeployment("a", ownedBy("a", foreignUID, apiVersion, "Foo")))
	tr.createFoo("a", "a", 3)
}

// B5: the controller restarts, and a stale API server sends it the Foos as they were.
func (tr *trial) staleServer(change func()) {
	r := tr.prepare()
	sent := make(chan []byte, 1000)
	r.proxy.EditEvents(func(_ context.Context, e proxy.Event) [][]byte {
		if e.Resource == "foos" {
			sent <- e.Raw
		}
		return e.Times(1)
	})
	tr.must(r.start())
	tr.settledFoo("a", "one", 1)
	var old [][]byte
	for len(sent) > 0 {
		old = append(old, <-sent)
	}
	change()
	tr.stableAndQuiet()
	before := len(r.proxy.Calls())
	r.kill()
	r.proxy.EditEvents(func(ctx context.Context, e proxy.Event) [][]byte {
		if e.Resource != "foos" {
			return e.Times(1)
		}
		replayed := old
		if old = nil; replayed == nil {
			<-ctx.Done()
		}
		return replayed
	})
	tr.must(r.start())
	tr.pause(2 * quiet) // it sees no newer Foo, so no fence either
	for _, call := range r.proxy.Calls()[before:] {
		if call.Succeeded() && (isUpdate(call) || call.Method == http.MethodDelete) {
			tr.failf("it acted on an older Foo: %s", call.Short())
		}
	}
	r.proxy.EditEvents(nil)
	r.proxy.EndWatches("foos")
}
