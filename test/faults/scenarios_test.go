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

package faults

const (
	noElection   = "has no leader election"
	noAdoption   = "has no adoption"
	noConditions = "has no conditions"
)

// scenarios are the rows that need no control plane of their own.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{crashScenarios(), viewScenarios(), ownershipScenarios(), serverScenarios(), leaderScenarios(), loadScenarios(), saidScenarios()} {
		all = append(all, some...)
	}
	return all
}

func crashScenarios() []scenario {
	return []scenario{
		{row: "A1", title: "crash before and after each write", quick: 10, cases: eachWrite(crashes)},
		{row: "A2", title: "a write is done and its reply lost", quick: 6, cases: eachWrite(lostReplies)},
		{row: "A3", title: "a write is cut off, and done after it has been made again", quick: 6, cases: eachWrite(lateWrites)},
		{row: "A4", title: "SIGTERM while a write is under way: the write is finished", quick: 1, cases: stopped,
			why: "Run returns without waiting for its workers, and the process ends with the request on its way"},
		{row: "A5", title: "the caches are late at the start, and the controller is killed meanwhile: nothing is written before", quick: 2, cases: emptyCaches},
		{row: "A6", title: "the process stands still while the world changes", quick: 1, cases: frozen},
	}
}

func viewScenarios() []scenario {
	return []scenario{
		{row: "B1", title: "the cache has not seen the controller's own create: there is no second", quick: 1, cases: staleDeployments},
		{row: "B2", title: "the Foo in the cache is older than what has been carried out: it is not put in its place", quick: 1, cases: staleFoos,
			why: "an Update without a resourceVersion, of a Foo that is not looked at again: the last writer wins, however old its view"},
		{row: "B3", title: "the Deployment of a dead namesake is not collected yet", quick: 1, cases: deadOwner},
		{row: "B5", title: "restart beside an API server that is behind: nothing is changed or deleted by what it says", quick: 2, cases: olderServer,
			why: "as B2"},
		{row: "B6", title: "a DELETE event is missed, then a relist", quick: 1, cases: missedDelete},
		{row: "B7", title: "each watch ends in 410 Gone", quick: 2, cases: expiredWatches},
		{row: "B9", title: "each event comes twice", quick: 2, cases: doubled},
		{row: "B10", title: "renamed and back before it is seen", quick: 1, cases: thereAndBack},
	}
}

func ownershipScenarios() []scenario {
	return []scenario{
		{row: "C3", title: "foreground deletion of a Foo: no new Deployment", quick: 1, cases: foreground,
			why: "the Foo's deletionTimestamp is not looked at"},
		{row: "C4", title: "orphan deletion: the Deployment survives, and is not taken over (C5)", quick: 2, cases: orphaned},
		{row: "C6", title: "the owner reference is stripped by a user", quick: 1, cases: stripped},
		{row: "C7", title: "two Foos ask for one Deployment", quick: 1, cases: sharedName},
		{row: "C9", title: "the Deployment is being deleted, and not gone yet: nothing is written", quick: 1, cases: terminating},
		{row: "C10", title: "the namespace is being deleted: no attempt is made any more", quick: 1, cases: leavingNamespace,
			why: "a create that the namespace's end forbids is an error like any other, and tried again"},
		{row: "C13", title: "the owner is a Foo of another API group", quick: 1, cases: otherGroup},
		{row: "C14", title: "what others put on the Deployment stays", quick: 1, cases: kept,
			why: "the Update sends a new object, built from the Foo alone"},
	}
}

func serverScenarios() []scenario {
	return []scenario{
		{row: "D1", title: "a rival writes to the Deployment", quick: 2, cases: rivals, why: "as C14, and without a resourceVersion"},
		{row: "D2", title: "a write is answered 409, 429, 500, 503, 401, or reset", quick: 6, cases: eachWrite(refusals)},
		{row: "D3", title: "nothing gets through for a while (429, 500, 503, 401, cut): the process goes on", quick: 2, cases: outages},
		{row: "D4", title: "calls that hang hold up nothing else", quick: 1, cases: hanging,
			why: "a call has no deadline, and there are two workers"},
		{row: "D8", title: "a server without WatchList", quick: 2, cases: withoutWatchList},
		{row: "D9", title: "the token is rotated", quick: 0, cases: rotatedToken},
		{row: "D10", title: "a right is taken away, and given back: the process goes on", quick: 0, cases: lostRights},
		{row: "D11", title: "a quota is exhausted, and raised", quick: 0, cases: exhaustedQuota},
		{row: "D12", title: "an admission policy refuses a Deployment, in many words, and is withdrawn", quick: 0, cases: refusedByPolicy},
		{row: "D14", title: "others have filled a Foo and its Deployment with annotations", quick: 1, cases: fullObjects, why: "as C14"},
	}
}

func leaderScenarios() []scenario {
	return []scenario{
		{row: "E1", title: "the leader is killed", quick: 1, cases: leaderKilled, oursOnly: noElection},
		{row: "E2", title: "the leader is stopped in mid-write: the Lease is released after it", quick: 1, cases: leaderStopped, oursOnly: noElection},
		{row: "E3", title: "the Lease is taken, or deleted (E6)", quick: 1, cases: leaseLost, oursOnly: noElection},
		{row: "E4", title: "a leader is frozen until another leads, and goes on", quick: 1, cases: leaderFrozen, oursOnly: noElection},
		{row: "E4", title: "two controllers work at once", quick: 2, cases: twoAtOnce},
		{row: "E7", title: "writes are slower than the Lease's renewals", quick: 1, cases: slowServer, oursOnly: noElection},
	}
}

func loadScenarios() []scenario {
	return []scenario{
		{row: "F5", title: "many Foos at once, and a crash", quick: 0, cases: many},
		{row: "F7", title: "events can't be written", quick: 1, cases: withoutEvents},
		{row: "rest", title: "at rest nothing is written, over resyncs too", quick: 1, cases: atRest,
			why: "each resync, every 30 s, sends a status and an event for each Foo"},
	}
}

// saidScenarios are about what is said while others are wrong. Upstream's
// controller is asked for the rest: what it writes, how often, and how it ends.
func saidScenarios() []scenario {
	return []scenario{
		{row: "G1", title: "a webhook that has to be asked is down (500): the Foo says so, and what there was serves on", quick: 3, cases: webhookDown},
		{row: "G2", title: "writes for two Foos are answered 429 with Retry-After: the others go on", quick: 2, cases: throttled,
			why: "client-go waits for Retry-After within the call, up to ten times, and there are two workers"},
		{row: "G3", title: "an admission policy changes each Deployment that is written (D12): the Foo says what differs, and nobody fights it", quick: 1, cases: overruledByPolicy,
			why: "each Update leaves out the annotation in which the Deployment's controller counts revisions; that one puts it back, which is a change, and has the Foo synced again: without end, as fast as the client's limit lets it"},
		{row: "G4", title: "an update is refused, and the Deployment's status changes all the time: it is not tried each time", quick: 1, cases: flapping,
			why: "each event of the Deployment has its Foo synced at once, whatever the back-off"},
		{row: "G5", title: "a Deployment is paused, with something to roll out", quick: 1, cases: pausedRollout, oursOnly: noConditions},
		{row: "G7", title: "the owner of a Deployment has an endless kind and name", quick: 1, cases: longOwner},
		{row: "G7", title: "an adopted Deployment has an endless selector", quick: 1, cases: longSelector, oursOnly: noAdoption},
		{row: "G8", title: "a Deployment was handed over once, and is not any more: it is not adopted again", quick: 2, cases: spentConsent, oursOnly: noAdoption},
		{row: "G9", title: "an outage and a refusal in turns: each is told once", quick: 1, cases: outageAndRefusal},
	}
}
