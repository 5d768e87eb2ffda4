// SPDX-License-Identifier: Apache-2.0

// The seeds of the fuzz targets.

package footest

import (
	"testing"
)

// FuzzSeed is an input that a fuzz target starts from.
type FuzzSeed struct {
	name          string
	Script, Noise []byte
	Words         string
}

// FuzzSeeds lead to every decision and every reason, so that short runs cover them, too.
// Rows add seeds for what is particular to their kind.
var FuzzSeeds = append([]FuzzSeed{
	{name: "all is as it should be", Script: script(fooCase{Status: 1}, ChildCase{})},
	{name: "no child", Script: script(fooCase{})},
	{name: "drift", Script: script(fooCase{Status: 1}, ChildCase{Content: contentDrifted, Optional: 1})},
	{name: "others' fields, and drift", Script: script(fooCase{Name: 1}, ChildCase{Name: 1, Content: contentMissing}), Noise: []byte("all kinds of things")},
	{name: "an autoscaler's replicas", Script: script(fooCase{Replicas: 1}, ChildCase{Optional: 1})},
	{name: "another Foo's", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo})},
	{name: "an earlier Foo's", Script: script(fooCase{Status: 1}, ChildCase{Owner: ownerEarlierFoo})},
	{name: "another group's", Script: script(fooCase{}, ChildCase{Owner: ownerFooOfAnotherGroup})},
	{name: "nobody's", Script: script(fooCase{Status: 2}, ChildCase{Owner: ownerNobody})},
	{name: "of another version of the API", Script: script(fooCase{}, ChildCase{Owner: ownerThisFooInAnotherVersion})},
	{name: "owned, not controlled", Script: script(fooCase{}, ChildCase{Owner: ownerThisFooButNotItsController})},
	{name: "controlled by another, owned by the Foo", Script: script(fooCase{}, ChildCase{Owner: ownerAnotherControlsThisFooOwns, AdoptBy: 1})},
	{name: "another kind's, with a name", Script: script(fooCase{}, ChildCase{Owner: ownerAnotherKind}), Words: "\"\u00e4\n"},
	{name: "handed over", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1}), Noise: []byte("0123456789abcdef")},
	{name: "handed over to another", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 2})},
	{name: "renamed", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Name: 2})},
	{name: "renamed, half-way", Script: script(fooCase{Status: 3}, ChildCase{}, ChildCase{Name: 1})},
	{name: "renamed onto another's", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Owner: ownerOtherFoo})},
	{name: "renamed onto one that is handed over", Script: script(fooCase{}, ChildCase{Name: 1}, ChildCase{Owner: ownerNobody, AdoptBy: 1})},
	{name: "the Foo is being deleted", Script: script(fooCase{Deleting: 1}, ChildCase{Content: contentDrifted})},
	{name: "the Foo is suspended", Script: script(fooCase{Deleting: 2}, ChildCase{Content: contentDrifted})},
	{name: "the child is being deleted", Script: script(fooCase{}, ChildCase{Deleting: 1, Content: contentDrifted})},
	{name: "a spec from before the rules, long words", Script: script(fooCase{Name: 3, Replicas: 4, Words: 2}), Words: "\u00e4\u00f6\u00fc"},
}, seedsOfKinds()...)

// StaleSeeds are inputs with stale caches.
var StaleSeeds = []FuzzSeed{
	{name: "drift, and the Foo has been renamed", Script: script(fooCase{Live: 2}, ChildCase{Content: contentDrifted})},
	{name: "drift, and the Foo has been made again", Script: script(fooCase{Live: 4}, ChildCase{Content: contentDrifted})},
	{name: "drift, and the child has been taken", Script: script(fooCase{}, ChildCase{Content: contentDrifted, Live: 3})},
	{name: "drift, and a user has made it again", Script: script(fooCase{}, ChildCase{Content: contentDrifted, Live: 6})},
	{name: "there, but not in the cache", Script: script(fooCase{}, ChildCase{Unseen: 1})},
	{name: "another's, but not in the cache", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo, Unseen: 1})},
	{name: "renamed there and back", Script: script(fooCase{Name: 1}, ChildCase{}, ChildCase{Name: 1, Live: 1})},
	{name: "renamed, and the old one has been taken", Script: script(fooCase{}, ChildCase{}, ChildCase{Name: 1, Live: 3})},
	{name: "renamed, and the new one is gone", Script: script(fooCase{}, ChildCase{Live: 1}, ChildCase{Name: 1})},
	{name: "renamed, and the Foo is gone", Script: script(fooCase{Live: 1}, ChildCase{}, ChildCase{Name: 1})},
	{name: "handed over, and taken", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Live: 3})},
	{name: "handed over, then to another", Script: script(fooCase{}, ChildCase{Owner: ownerNobody, AdoptBy: 1, Live: 7})},
	{name: "another's, then the Foo's", Script: script(fooCase{}, ChildCase{Owner: ownerOtherFoo, Live: 4})},
}

func seedsOfKinds() []FuzzSeed {
	var seeds []FuzzSeed
	for _, kind := range Kinds {
		seeds = append(seeds, kind.Seeds...)
	}
	return seeds
}

// AddSeeds adds seeds to a fuzz target.
func AddSeeds(f *testing.F, seeds []FuzzSeed) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed.Script, seed.Noise, seed.Words)
	}
}
