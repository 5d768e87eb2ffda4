// SPDX-License-Identifier: Apache-2.0

// The budget of reviews: how often callers can make the controller ask the API server.

package serving

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// The rate of reviews, of both kinds, for all callers of a class together. A scraper
	// needs one or two a minute, a reader of profiles a few at once.
	reviewsPerSecond = 10
	reviewsAtOnce    = 20

	// knownFor is how long a caller counts as known after its last request that was
	// allowed. It is longer than any usual scrape interval.
	knownFor = time.Hour
	// maxKnown is more than a controller's callers, and takes less than 1 MiB.
	maxKnown = 1000
)

// caller identifies who makes a request. Only the hash of the token is kept.
type caller struct {
	token   [sha256.Size]byte
	address netip.Addr
}

// callerOf returns the caller with a token at HOST:PORT. All invalid addresses are one.
func callerOf(token, remote string) caller {
	from, _ := netip.ParseAddrPort(remote)
	return caller{token: sha256.Sum256([]byte(token)), address: from.Addr().Unmap().WithZone("")}
}

// reviewBudget bounds the reviews that callers can cause. Anybody can send made-up tokens
// at any rate, so with one limit for all they could keep the scrapers out. A caller that
// was allowed lately therefore has a limit that strangers can't use up. It is recognized by
// its token, even behind a proxy that all callers use; and by its address, so that it can
// replace a token that expires.
type reviewBudget struct {
	known                              *cache.LRUExpireCache
	ofTokens, ofAddresses, ofStrangers flowcontrol.PassiveRateLimiter
}

func newReviewBudget() *reviewBudget {
	limit := func() flowcontrol.PassiveRateLimiter {
		return flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce)
	}
	return &reviewBudget{known: cache.NewLRUExpireCache(maxKnown), ofTokens: limit(), ofAddresses: limit(), ofStrangers: limit()}
}

// take takes one review from the caller's budget, and reports whether there was one left.
func (b *reviewBudget) take(who caller) bool {
	switch {
	case b.isKnown(who.token):
		return b.ofTokens.TryAccept()
	case b.isKnown(who.address):
		return b.ofAddresses.TryAccept()
	}
	return b.ofStrangers.TryAccept()
}

func (b *reviewBudget) isKnown(tokenOrAddress any) bool {
	_, known := b.known.Get(tokenOrAddress)
	return known
}

// remember makes a caller known.
func (b *reviewBudget) remember(who caller) {
	b.known.Add(who.token, nil, knownFor)
	b.known.Add(who.address, nil, knownFor)
}
