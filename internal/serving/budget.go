// SPDX-License-Identifier: Apache-2.0

// The budget of reviews: how often callers can make the controller ask the API server.

package serving

import (
	"crypto/sha256"

	"k8s.io/client-go/util/flowcontrol"
)

const (
	// The rate of reviews, of both kinds, for all strangers together.
	reviewsPerSecond = 10
	reviewsAtOnce    = 20
	// The share of each stranger. A stranger becomes known after two reviews.
	strangersPerSecond = 0.1
	strangersAtOnce    = 6
	// The rate of reviews for each known token, and for new tokens from each known
	// address. A scraper needs one or two reviews a minute, a reader of profiles a few at
	// once.
	knownPerSecond = 1
	knownAtOnce    = 20
)

// caller identifies who makes a request. Only the hash of the token is kept.
type caller struct {
	token [sha256.Size]byte
	from  origin
}

func callerOf(token, remote string) caller {
	return caller{token: sha256.Sum256([]byte(token)), from: originOf(remote)}
}

// reviewBudget bounds the reviews that callers can cause. Anybody can send made-up tokens
// at any rate, from any number of Pods, so with one limit for all they could keep the
// scrapers out. A caller that passed the gate lately therefore has a share that strangers
// can't use up. It is recognized by its token, even if all clients come from one address,
// such as a proxy's; and by its address, so that it can replace a token that expires.
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

// take takes one review from the caller's budget, and reports whether there was one left.
func (b *reviewBudget) take(who caller) bool {
	switch {
	case b.passed.has(who.token):
		return b.ofKnown.take(who.token)
	case b.passed.has(who.from.address):
		return b.ofKnown.take(who.from.address)
	}
	// Check the caller's own share first: if it is used up, the others lose nothing.
	return b.ofStrangers.take(who.from.network) && b.strangers.TryAccept()
}

// remember makes a caller known.
func (b *reviewBudget) remember(who caller) {
	b.passed.add(who.token)
	b.passed.add(who.from.address)
}
