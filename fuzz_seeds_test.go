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
	"testing"
)

// fuzzSeed is a world that a target starts from.
type fuzzSeed struct {
	name          string
	script, noise []byte
	words         string
}

// fuzzSeeds lead to each decision and each reason, so that a short run begins
// where it would else have to find its way to.
var fuzzSeeds = []fuzzSeed{
	{name: "all is as it should be", script: script(fooCase{Status: 1}, deploymentCase{})},
	{name: "no Deployment", script: script(fooCase{})},
	{name: "drift", script: script(fooCase{Status: 1}, deploymentCase{Container: containerDrifted, Replicas: 1})},
	{name: "others' fields, and drift", script: script(fooCase{Name: 1}, deploymentCase{Name: 1, Container: containerMissing}), noise: []byte("all kinds of things")},
	{name: "an autoscaler's replicas", script: script(fooCase{Replicas: 1}, deploymentCase{Replicas: 1})},
	{name: "another Foo's", script: script(fooCase{}, deploymentCase{Owner: ownerOtherFoo})},
	{name: "an earlier Foo's", script: script(fooCase{Status: 1}, deploymentCase{Owner: ownerEarlierFoo})},
	{name: "another group's", script: script(fooCase{}, deploymentCase{Owner: ownerFooOfAnotherGroup})},
	{name: "nobody's", script: script(fooCase{Status: 2}, deploymentCase{Owner: ownerNobody})},
	{name: "of another version of the API", script: script(fooCase{}, deploymentCase{Owner: ownerThisFooInAnotherVersion})},
	{name: "owned, not controlled", script: script(fooCase{}, deploymentCase{Owner: ownerThisFooButNotItsController})},
	{name: "controlled by another, owned by the Foo", script: script(fooCase{}, deploymentCase{Owner: ownerAnotherControlsThisFooOwns, AdoptBy: 1})},
	{name: "another kind's, with a name", script: script(fooCase{}, deploymentCase{Owner: ownerAnotherKind}), words: "\"\u00e4\n"},
	{name: "handed over", script: script(fooCase{}, deploymentCase{Owner: ownerNobody, AdoptBy: 1}), noise: []byte("0123456789abcdef")},
	{name: "handed over, with a selector of its own", script: script(fooCase{}, deploymentCase{Owner: ownerNobody, AdoptBy: 1, Selector: selectorBoth})},
	{name: "handed over to another", script: script(fooCase{}, deploymentCase{Owner: ownerNobody, AdoptBy: 2})},
	{name: "renamed", script: script(fooCase{}, deploymentCase{Name: 1}, deploymentCase{Name: 2})},
	{name: "renamed, half-way", script: script(fooCase{Status: 3}, deploymentCase{}, deploymentCase{Name: 1})},
	{name: "renamed onto another's", script: script(fooCase{}, deploymentCase{Name: 1}, deploymentCase{Owner: ownerOtherFoo})},
	{name: "renamed onto one that is handed over", script: script(fooCase{}, deploymentCase{Name: 1}, deploymentCase{Owner: ownerNobody, AdoptBy: 1})},
	{name: "the Foo is being deleted", script: script(fooCase{Deleting: 1}, deploymentCase{Container: containerDrifted})},
	{name: "the Deployment is being deleted", script: script(fooCase{}, deploymentCase{Deleting: 1, Container: containerDrifted})},
	{name: "rolling out", script: script(fooCase{Status: 1}, deploymentCase{Rollout: rolloutHalf})},
	{name: "not seen by its controller", script: script(fooCase{}, deploymentCase{Rollout: rolloutUnseen})},
	{name: "no Pods, with a long message", script: script(fooCase{Words: 2}, deploymentCase{Rollout: rolloutReplicaFailure}), words: "quota \u00e4\U0001f600"},
	{name: "stuck", script: script(fooCase{}, deploymentCase{Rollout: rolloutStuck}), words: "ProgressDeadlineExceeded"},
	{name: "a spec from before the rules, long words", script: script(fooCase{Name: 3, Replicas: 4, Words: 2}), words: "\u00e4\u00f6\u00fc"},
}

// staleSeeds are worlds that the caches know as they were.
var staleSeeds = []fuzzSeed{
	{name: "drift, and the Foo has been renamed", script: script(fooCase{Live: 2}, deploymentCase{Container: containerDrifted})},
	{name: "drift, and the Foo has been made again", script: script(fooCase{Live: 4}, deploymentCase{Container: containerDrifted})},
	{name: "drift, and the Deployment has been taken", script: script(fooCase{}, deploymentCase{Container: containerDrifted, Live: 3})},
	{name: "drift, and a user has made it again", script: script(fooCase{}, deploymentCase{Container: containerDrifted, Live: 6})},
	{name: "there, but not in the cache", script: script(fooCase{}, deploymentCase{Unseen: 1})},
	{name: "another's, but not in the cache", script: script(fooCase{}, deploymentCase{Owner: ownerOtherFoo, Unseen: 1})},
	{name: "renamed there and back", script: script(fooCase{Name: 1}, deploymentCase{}, deploymentCase{Name: 1, Live: 1})},
	{name: "renamed, and the old one has been taken", script: script(fooCase{}, deploymentCase{}, deploymentCase{Name: 1, Live: 3})},
	{name: "renamed, and the new one is gone", script: script(fooCase{}, deploymentCase{Live: 1}, deploymentCase{Name: 1})},
	{name: "renamed, and the Foo is gone", script: script(fooCase{Live: 1}, deploymentCase{}, deploymentCase{Name: 1})},
	{name: "handed over, and taken", script: script(fooCase{}, deploymentCase{Owner: ownerNobody, AdoptBy: 1, Live: 3})},
	{name: "handed over, then to another", script: script(fooCase{}, deploymentCase{Owner: ownerNobody, AdoptBy: 1, Live: 7})},
	{name: "another's, then the Foo's", script: script(fooCase{}, deploymentCase{Owner: ownerOtherFoo, Live: 4})},
}

func addSeeds(f *testing.F, seeds []fuzzSeed) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed.script, seed.noise, seed.words)
	}
}
