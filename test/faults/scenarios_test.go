// SPDX-License-Identifier: Apache-2.0

// The rows of the matrix that share one cluster. The rows are named after the kind of
// fault, as docs/faults.md says.

package faults

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
