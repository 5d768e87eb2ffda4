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

package serving

import (
	"crypto/sha256"

	"k8s.io/client-go/util/flowcontrol"
)

const (
	// How many reviews per second, of both kinds, the API server is asked for
	// on behalf of all strangers together.
	reviewsPerSecond = 10
	reviewsAtOnce    = 20
	// What each stranger has of it. To become known takes two reviews.
	strangersPerSecond = 0.1
	strangersAtOnce    = 6
	// What each known token has, and each known address for new tokens. A
	// scraper needs one or two reviews a minute, one of profiles a few at once.
	knownPerSecond = 1
	knownAtOnce    = 20
)

// caller is who makes a request. The token is kept as a hash only.
type caller struct {
	token [sha256.Size]byte
	from  origin
}

func callerOf(token, remote string) caller {
	return caller{token: sha256.Sum256([]byte(token)), from: originOf(remote)}
}

// reviewBudget bounds what callers can make the controller ask the API server.
// Anybody can make up tokens at any rate, from any number of Pods, so one limit
// for all would let them keep the scrapers out. Who passed the gate lately has a
// share that strangers can't touch: by the token, also where all clients come
// from one address, such as a proxy's, and by the address, for the token that
// follows when one expires.
type reviewBudget struct {
	passed      recent
	ofKnown     *shares
	ofStrangers *shares
	strangers   flowcontrol.PassiveRateLimiter
}

func newReviewBudget() *reviewBudget {
	return &reviewBudget{
		passed:      newRecent(),
		ofKnown:     newShares(knownPerSecond, knownAtOnce),
		ofStrangers: newShares(strangersPerSecond, strangersAtOnce),
		strangers:   flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
	}
}

// take uses up one review, or reports that the caller has to wait for it.
func (b *reviewBudget) take(who caller) bool {
	switch {
	case b.passed.has(who.token):
		return b.ofKnown.take(who.token)
	case b.passed.has(who.from.address):
		return b.ofKnown.take(who.from.address)
	}
	// The own share first: who has used it up takes nothing from the others.
	return b.ofStrangers.take(who.from.network) && b.strangers.TryAccept()
}

// remember makes a caller known.
func (b *reviewBudget) remember(who caller) {
	b.passed.add(who.token)
	b.passed.add(who.from.address)
}
