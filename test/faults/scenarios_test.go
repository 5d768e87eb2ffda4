// SPDX-License-Identifier: Apache-2.0

// The rows of the matrix that share one cluster, and the workloads without faults. The
// rows are named after the kind of fault, as docs/faults.md says.

package faults

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

const (
	noElection   = "has no leader election"
	noAdoption   = "has no adoption"
	noConditions = "has no conditions"
	noImage      = "has no flag for the image"
	noCleanup    = "deletes no Deployments of former names"
)

// scenarios are the rows that need no control plane of their own.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{crashScenarios(), viewScenarios(), ownershipScenarios(), serverScenarios(), leaderScenarios(), loadScenarios(), reportingScenarios()} {
		all = append(all, some...)
	}
	return all
}

func crashScenarios() []scenario {
	return []scenario{
		{row: "A1", title: "crash before and after each write", quick: 10, cases: eachWrite(crashes)},
		{row: "A2", title: "a write is done, and its reply is lost", quick: 6, cases: eachWrite(lostReplies)},
		{row: "A3", title: "a write is cut off, and arrives after it has been repeated", quick: 6, cases: eachWrite(lateWrites)},
		{row: "A4", title: "SIGTERM while a write is under way: the write is finished, unless a second signal follows", quick: 2, cases: stopped,
			why: "Run returns without waiting for its workers, and the process exits while the request is under way"},
		{row: "A5", title: "the caches fill late after a start, and the controller is killed meanwhile: nothing is written before they are full", quick: 2, cases: lateCaches},
		{row: "A6", title: "the process is frozen while objects change", quick: 1, cases: frozen},
	}
}

func viewScenarios() []scenario {
	return []scenario{
		{row: "B1", title: "the cache lacks the controller's own create: there is no second create", quick: 1, cases: staleDeployments},
		{row: "B2", title: "the Foo in the cache is older than the one that was reconciled: its spec does not overwrite the newer one", quick: 1, cases: staleFoos,
			why: "it sends an Update without a resourceVersion and does not read the Foo again: the last writer wins, however stale its cache"},
		{row: "B3", title: "the Deployment of a deleted Foo of the same name has not been garbage collected yet", quick: 1, cases: deletedOwner},
		{row: "B5", title: "restart with a stale API server: nothing is updated or deleted because of what it says", quick: 2, cases: staleServer,
			why: "as B2"},
		{row: "B6", title: "a DELETED event is lost, and a relist follows", quick: 1, cases: missedDelete},
		{row: "B7", title: "each watch ends with 410 Gone", quick: 2, cases: expiredWatches},
		{row: "B9", title: "each event is sent twice", quick: 2, cases: duplicatedEvents},
		{row: "B10", title: "the Deployment is renamed and back before the controller sees it", quick: 1, cases: renamedAndBack},
	}
}

func ownershipScenarios() []scenario {
	return []scenario{
		{row: "C3", title: "foreground deletion of a Foo: no new Deployment is created", quick: 1, cases: foregroundDeletion,
			why: "the Foo's deletionTimestamp is not checked"},
		{row: "C4", title: "orphan deletion of a Foo: the Deployment stays, and is not adopted (C5)", quick: 2, cases: orphanDeletion},
		{row: "C6", title: "a user removes the owner reference", quick: 1, cases: ownerRemoved},
		{row: "C7", title: "two Foos ask for one Deployment", quick: 1, cases: sharedName},
		{row: "C9", title: "the Deployment is being deleted, and still exists: nothing is written", quick: 1, cases: terminatingDeployment},
		{row: "C10", title: "the namespace is being deleted: no further write is attempted", quick: 1, cases: terminatingNamespace,
			why: "a create that is refused because the namespace is being deleted is treated like any other error, and retried"},
		{row: "C13", title: "the owner is a Foo of another API group", quick: 1, cases: otherGroup},
		{row: "C14", title: "what other writers put on the Deployment stays", quick: 1, cases: foreignFieldsKept,
			why: "the Update sends a new object, made from the Foo alone"},
		{row: "C16", title: "a Foo is renamed: the old Deployment stays in service until the new one is ready, and the new one begins with its number", quick: 1, cases: renamed},
	}
}

func serverScenarios() []scenario {
	return []scenario{
		{row: "D1", title: "another client writes to the Deployment", quick: 2, cases: rivalWriters, why: "as C14, and without a resourceVersion"},
		{row: "D2", title: "a write is answered with 409, 429, 500, 503 or 401, or its connection is reset", quick: 6, cases: eachWrite(refusals)},
		{row: "D3", title: "all requests fail for a while (429, 500, 503, 401, cut): the process keeps running", quick: 2, cases: outages},
		{row: "D4", title: "calls that hang delay no other Foo", quick: 1, cases: hangingCalls,
			why: "calls have no timeout, and there are two workers"},
		{row: "D8", title: "the API server does not support WatchList", quick: 2, cases: withoutWatchList},
		{row: "D9", title: "the token is rotated", quick: 0, cases: rotatedToken},
		{row: "D10", title: "a permission is revoked and granted again: the process keeps running", quick: 0, cases: lostPermissions},
		{row: "D11", title: "a quota is exhausted, and raised", quick: 1, cases: exhaustedQuota},
		{row: "D12", title: "an admission policy refuses a Deployment with a long message, and is deleted", quick: 1, cases: refusedByPolicy},
		{row: "D14", title: "other writers have filled a Foo and its Deployment with annotations", quick: 1, cases: fullObjects, why: "as C14"},
		{row: "D15", title: "the first streams of all Foos are answered with 503, and the Foos are large: they are never in memory all at once", quick: 0, cases: interruptedStream,
			why: "it lists all objects when their stream fails, and its cache keeps them whole"},
	}
}

func leaderScenarios() []scenario {
	return []scenario{
		{row: "E1", title: "the leader is killed", quick: 1, cases: leaderKilled, oursOnly: noElection},
		{row: "E2", title: "the leader is stopped during a write: it releases the Lease after the write", quick: 1, cases: leaderStopped, oursOnly: noElection},
		{row: "E3", title: "the Lease is taken, or deleted (E6)", quick: 2, cases: leaseLost, oursOnly: noElection},
		{row: "E4", title: "a leader is frozen until another leads, and continues", quick: 1, cases: leaderFrozen, oursOnly: noElection},
		{row: "E4", title: "two controllers run at once", quick: 2, cases: twoControllers},
		{row: "E7", title: "writes take longer than the renew deadline of the Lease", quick: 1, cases: slowWrites, oursOnly: noElection},
	}
}

func loadScenarios() []scenario {
	return []scenario{
		{row: "F5", title: "a hundred Foos at once, and a crash", quick: 0, cases: manyFoos},
		{row: "F6", title: "hundreds of Foos ask for one Deployment: its changes, and changes of its owner, do not write to all of them", quick: 0, cases: oneName},
		{row: "F7", title: "Events can't be written", quick: 1, cases: withoutEvents},
		{row: "rest", title: "at rest nothing is written, not even at a resync", quick: 1, cases: atRest,
			why: "each resync, every 30 s, writes a status and an Event for each Foo"},
	}
}

// reportingScenarios are about what a controller reports while something else fails. Of
// upstream's controller, which has no conditions, they check the rest: what it writes,
// how often, and whether it keeps running.
func reportingScenarios() []scenario {
	return []scenario{
		{row: "G1", title: "a webhook that must be called is down (500): the Foo reports it, and the existing Pods stay in service", quick: 3, cases: webhookDown},
		{row: "G2", title: "writes for two Foos are answered with 429 and Retry-After: other Foos do not wait", quick: 2, cases: throttled,
			why: "client-go waits for Retry-After within the call, up to ten times, and there are two workers"},
		{row: "G3", title: "an admission policy changes each Deployment that is written (D12): the Foo reports what differs, and the controller does not write again", quick: 3, cases: mutatedByPolicy,
			why: "each Update drops the annotation in which the Deployment controller counts revisions; that controller adds it again, which is a change and causes the next sync of the Foo: an endless loop, as fast as the client's rate limit allows"},
		{row: "G4", title: "an update is refused while the Deployment's status changes all the time: the update is not repeated at each change", quick: 1, cases: flapping,
			why: "each event of the Deployment adds the Foo's key to the queue at once, whatever its back-off"},
		{row: "G5", title: "a Deployment is paused during a rollout", quick: 1, cases: pausedRollout, oursOnly: noConditions},
		{row: "G7", title: "the owner of a Deployment has a very long kind and name", quick: 1, cases: longOwner},
		{row: "G7", title: "an adopted Deployment has a very long selector", quick: 1, cases: longSelector, oursOnly: noAdoption},
		{row: "G8", title: "a Deployment that was handed over once is taken away: it is not adopted again", quick: 2, cases: adoptedOnce, oursOnly: noAdoption},
		{row: "G9", title: "an outage and a refusal in turn: each is reported once", quick: 1, cases: outageAndRefusal},
		{row: "G12", title: "a webhook denies a write with the code 409 or 404, or the reason Conflict: the Foo reports it within seconds, and the write is not repeated all the time", quick: 2, cases: denied},
		{row: "G13", title: "somebody changes the Deployment back after each repair: few repairs, one Warning, and the Foo says who it is", quick: 0, cases: changedBack,
			why: "each event of the Deployment adds the Foo's key to the queue at once"},
		{row: "G13", title: "two controllers with different images have one Foo", quick: 0, cases: twoImages, oursOnly: noImage},
		{row: "G14", title: "an admission policy changes a Deployment only when it is created: one update repairs it", quick: 1, cases: mutatedOnCreate},
	}
}

// workload is something that a user does and that makes a controller write.
type workload struct {
	name string
	// row and title are shown in the matrix.
	row, title string
	arrange    func(ctx context.Context, tr *trial) error
	act        func(ctx context.Context, tr *trial) error
	// oursOnly says why the workload can be run with our controller only.
	oursOnly string
	// why explains why upstream's controller fails the workload.
	why string
}

// workloads are run without a fault, and then once for each write and fault.
func workloads() []workload {
	return []workload{{
		name: "create", row: "C15", title: "a Foo is created",
		arrange: func(context.Context, *trial) error { return nil },
		act:     func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
	}, {
		name: "scale", row: "C15", title: "a Foo is scaled",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 1) },
		act:     func(ctx context.Context, tr *trial) error { return tr.scaleFoo(ctx, "a", 3) },
	}, {
		name: "rename", row: "C1", title: "a Foo asks for a Deployment of another name", why: "it reads only the Deployment of the current name",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "one", 1) },
		act:     func(ctx context.Context, tr *trial) error { return tr.renameDeployment(ctx, "a", "two") },
	}, {
		name: "drift", row: "C14", title: "somebody scales the Deployment",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
		act: func(ctx context.Context, tr *trial) error {
			return tr.patchDeployment(ctx, "a", `{"spec":{"replicas":5}}`)
		},
	}, {
		name: "deleted", row: "C8", title: "somebody deletes the Deployment",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
		act: func(ctx context.Context, tr *trial) error {
			return tr.deployments().Delete(ctx, "a", deleteNow())
		},
	}, {
		name: "recreate", row: "B3", title: "a Foo is deleted and created again",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 1) },
		act: func(ctx context.Context, tr *trial) error {
			return errors.Join(tr.deleteFoo(ctx, "a", metav1.DeletePropagationBackground), tr.createFoo(ctx, "a", "a", 2))
		},
	}, {
		name: "takeover", row: "C7", title: "two Foos ask for one Deployment, and the first is deleted",
		arrange: func(ctx context.Context, tr *trial) error {
			if err := tr.createFoo(ctx, "first", "shared", 1); err != nil {
				return err
			}
			return errors.Join(tr.settled(ctx), tr.createFoo(ctx, "second", "shared", 2))
		},
		act: func(ctx context.Context, tr *trial) error {
			return tr.deleteFoo(ctx, "first", metav1.DeletePropagationBackground)
		},
	}, {
		name: "adopt", row: "C5", title: "a Deployment is handed over to a Foo", oursOnly: noAdoption,
		arrange: func(ctx context.Context, tr *trial) error {
			if _, err := tr.deployments().Create(ctx, newDeployment("orphan"), metav1.CreateOptions{}); err != nil {
				return err
			}
			return tr.createFoo(ctx, "a", "orphan", 2)
		},
		act: func(ctx context.Context, tr *trial) error {
			return tr.patchDeployment(ctx, "orphan", `{"metadata":{"annotations":{"samplecontroller.k8s.io/adopt-by":"a"}}}`)
		},
	}}
}

// passing returns the workloads that a subject passes without a fault. A failure with a
// fault means something only for these.
func passing(writes writeCounts) []workload {
	return slices.DeleteFunc(workloads(), func(w workload) bool { return writes[w.name] == 0 })
}

// errNotReached says that a run made fewer writes than the one without faults, so that
// there was nothing to break.
var errNotReached = errors.New("the write that was to fail was not made")

// breakage is a fault of one write. make is called for each trial.
type breakage struct {
	name string
	make func(r *replica) (fault proxy.Fault, afterwards func())
}

// run runs a workload without a fault and returns the number of its writes.
func (w *workload) run(ctx context.Context, tr *trial) (writes int, err error) {
	r, err := w.prepare(ctx, tr)
	if err != nil {
		return 0, err
	}
	if err := w.act(ctx, tr); err != nil {
		return 0, err
	}
	err = tr.stableAndQuiet(ctx)
	return r.proxy.Writes(), err
}

// runBroken runs a workload in which one write, counted from 1, fails.
func (w *workload) runBroken(ctx context.Context, tr *trial, b breakage, write int) error {
	r, err := w.prepare(ctx, tr)
	if err != nil {
		return err
	}
	fault, afterwards := b.make(r)
	var reached atomic.Bool
	r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if call.Write != write {
			return nil
		}
		reached.Store(true)
		return fault
	})
	if err := w.act(ctx, tr); err != nil {
		return err
	}
	err = tr.stableAndQuiet(ctx)
	if err == nil && !reached.Load() {
		return errNotReached
	}
	if err != nil || afterwards == nil {
		return err
	}
	afterwards()
	return tr.stableAndQuiet(ctx)
}

func (w *workload) prepare(ctx context.Context, tr *trial) (*replica, error) {
	r, err := tr.start()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.arrange(ctx, tr), tr.settled(ctx)); err != nil {
		return nil, err
	}
	r.proxy.ResetWrites()
	return r, nil
}
