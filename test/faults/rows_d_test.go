// SPDX-License-Identifier: Apache-2.0

// Rows D: the API server and its store. Here are D1 to D8: rival writers, failures, calls
// that hang, and components of the control plane.

package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/test/faults/proxy"
)

var rowsD = []scenario{
	{row: "D1", title: "another client writes to the Deployment",
		quick: 2, exempt: true, why: "as C14, and without a resourceVersion", cases: []trialCase{
			{name: "while the write is under way", run: func(tr *trial) {
				open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Forward)
				tr.annotate("a", "mine")
				open()
			}},
			{name: "takes the owner away while the write is under way", run: func(tr *trial) {
				open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Forward)
				takeAway(tr)
				open()
			}},
			{name: "unseen by the cache", run: func(tr *trial) {
				// The controller does not see the other client's write.
				r := tr.startWithFoo("a", 1)
				release := r.proxy.HoldEvents("deployments")
				defer release()
				tr.annotate("a", "mine")
				tr.scaleFoo("a", 3)
				tr.awaitCall(r, isUpdate, isAnswered)
				release()
			}},
			{name: "a storm", run: storm},
		}},
	{row: "D2", title: "a write is answered with 409, 429, 500, 503 or 401, or its connection is reset",
		quick: 6, cases: eachWrite(
			always("409", proxy.Refuse(http.StatusConflict)), always("429", proxy.Refuse(http.StatusTooManyRequests)),
			always("500", proxy.Refuse(http.StatusInternalServerError)),
			always("503", proxy.Refuse(http.StatusServiceUnavailable)),
			always("401", proxy.Refuse(http.StatusUnauthorized)), always("reset", proxy.Cut))},
	{row: "D3", title: "all requests fail for a while (429, 500, 503, 401, cut): the process keeps running",
		quick: 2, cases: []trialCase{
			{name: "429 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusTooManyRequests)) }},
			{name: "500 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusInternalServerError)) }},
			{name: "503 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusServiceUnavailable)) }},
			{name: "401 to all", run: func(tr *trial) { tr.outage(proxy.Refuse(http.StatusUnauthorized)) }},
			{name: "connections cut", run: func(tr *trial) { tr.outage(proxy.Cut) }},
		}},
	{row: "D4", title: "calls that hang delay no other Foo",
		quick: 1, why: "calls have no timeout, and there are two workers", cases: []trialCase{
			{name: "not done", run: func(tr *trial) { tr.hangCalls(proxy.Hang) }},
			{name: "done", run: func(tr *trial) { tr.hangCalls(proxy.Done(proxy.Hang)) }},
		}},
	{row: "D5", title: "the API server is killed and restarted, with cold caches",
		breaksPlane: true, cases: []trialCase{
			{name: "killed before a write", run: func(tr *trial) { tr.restartDuringScale(apiServer) }},
			{name: "killed after a write", run: func(tr *trial) {
				// The write is done before the API server is killed, and not answered.
				r := tr.startWithFoo("a", 1)
				release := make(chan struct{})
				r.proxy.Use(first(1, isUpdate), proxy.Done(proxy.Hold(release, proxy.Cut)))
				tr.scaleFoo("a", 3)
				tr.awaitCall(r, isUpdate, isAnswered)
				tr.restart(func() {}, apiServer)
				close(release)
			}},
		}},
	{row: "D6", title: "etcd is killed, or frozen", breaksPlane: true, cases: []trialCase{
		{name: "killed before a write", run: func(tr *trial) { tr.restartDuringScale(etcd) }},
		{name: "frozen during a write", run: func(tr *trial) {
			open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Done(proxy.Cut))
			store := tr.plane.components[etcd]
			defer store.signal(syscall.SIGCONT)
			store.signal(syscall.SIGSTOP)
			open()
			tr.pause(3 * quiet)
		}},
	}},
	{row: "D7", title: "etcd is restored from a backup, so resourceVersions go back",
		breaksPlane: true, cases: one("restored", func(tr *trial) {
			// All other components are restarted with etcd, as the procedure for a restore says;
			// the controller keeps running. The API server answers watches with 429 while it fills
			// its caches. The proxy does so a little longer, so that every watch is continued at
			// an old version and none is begun without one by chance.
			backup, live := filepath.Join(tr.plane.data, "backup"), filepath.Join(tr.plane.data, "etcd")
			r := tr.start("-v=4")
			tr.createFoo("a", "a", 1)
			tr.settledFoo("b", "b", 1)
			tr.restart(func() { tr.must(os.CopyFS(backup, os.DirFS(live))) }, etcd, apiServer)
			tr.scaleFoo("a", 3)
			tr.scaleFoo("b", 2)
			tr.settledFoo("c", "c", 1)
			for i := range lostChanges {
				patch := annotating(map[string]string{"age": strconv.Itoa(i)})
				_, err := tr.cluster.kube.CoreV1().Namespaces().Patch(tr.ctx, tr.ns, types.MergePatchType,
					[]byte(patch), metav1.PatchOptions{})
				tr.must(err)
			}
			warm := r.proxy.Use((*proxy.Call).IsWatch, proxy.Refuse(http.StatusTooManyRequests))
			tr.restart(func() {
				tr.must(os.RemoveAll(live))
				tr.must(os.Rename(backup, live))
			}, allComponents()...)
			warm()
			tr.phase = "after the restore"
			tr.stableAndQuiet()
			tr.scaleFoo("a", 2)
			tr.createFoo("d", "d", 1)
			tr.stableAndQuiet()
			if writes := len(r.made(isWork)); writes > maxWritesAfterRestore {
				tr.failf("it made %d writes for four Foos", writes)
			}
		}),
		why: "the informers continue their watches at versions that the store has not reached, and get no events until it has"},
	{row: "D8", title: "the API server does not support WatchList", quick: 2, cases: throughout(func(r *replica) {
		r.proxy.Use(isInitialStream, proxy.Refuse(http.StatusUnprocessableEntity))
	})},
}

// D1: a hundred writes of another client.
func storm(tr *trial) {
	tr.startWithFoo("a", 1)
	for i := range 100 {
		tr.patchDeployment("a", annotating(map[string]string{"storm": strconv.Itoa(i)}))
		if i%20 == 10 {
			tr.scaleFoo("a", int32(i/20+1))
		}
	}
	tr.protectAnnotations("a", map[string]string{"storm": "99"})
}

// D2 and D3: for a while, no request succeeds.
func (tr *trial) outage(fault proxy.Fault) {
	r := tr.start()
	tr.createFoo("a", "a", 1)
	tr.settledFoo("b", "b", 1)
	end := r.proxy.Use(all, fault)
	r.proxy.EndWatches("")
	tr.scaleFoo("a", 3)
	tr.scaleDeployment("b", 4)
	tr.createFoo("c", "c", 1)
	tr.pause(3 * quiet)
	tr.mustRun(r)
	end()
}

// D4: calls that are never answered do not delay other Foos.
func (tr *trial) hangCalls(fault proxy.Fault) {
	r := tr.start(tr.flagsOfOurs("-request-timeout=2s")...)
	end := r.proxy.Use(both(isCreate, isAbout("stuck-")), fault)
	tr.createFoo("stuck-1", "stuck-1", 1)
	tr.createFoo("stuck-2", "stuck-2", 1)
	tr.awaitCall(r, hasFault)
	tr.phase = "two calls hang, and a third Foo is delayed"
	tr.createFoo("free", "free", 1)
	tr.awaitDeployment("exists", "free", func(*appsv1.Deployment) error { return nil })
	tr.phase = ""
	end()
}

// D5 and D6: a component is killed and restarted while the controller scales a Deployment.
// That write is its only one, so no status changes between the two recordings.
func (tr *trial) restartDuringScale(component string) {
	open := tr.holdScale(tr.startWithFoo("a", 1), proxy.Cut)
	tr.restart(func() {}, component)
	open()
}

const (
	// lostChanges is the least number of versions that a restore goes back: more than the
	// cluster makes again while the trial is judged.
	lostChanges = 1000
	// maxWritesAfterRestore is more than a controller needs to converge after the restore.
	maxWritesAfterRestore = 200
)
