// SPDX-License-Identifier: Apache-2.0

// Where clients connect from, and rate limits for each of them.

package serving

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// knownFor is how long a client counts as known after the last request of it that the
	// gate let through. It is longer than any usual scrape interval.
	knownFor = time.Hour
	// maxRemembered bounds the size of each table here. It is more than a controller's
	// clients, and takes less than 1 MiB.
	maxRemembered = 1000
)

// origin is where a client connects from.
type origin struct {
	address netip.Addr
	// network is the smallest network that one client may own entirely: in IPv6 a /64,
	// whose addresses count as one. The Pods of a node may share a /64, so a known client
	// is recognized by its address.
	network netip.Prefix
}

// originOf parses the HOST:PORT of a client. All invalid addresses are one origin.
func originOf(remote string) origin {
	parsed, err := netip.ParseAddrPort(remote)
	if err != nil {
		return origin{}
	}
	address := parsed.Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	return origin{address: address, network: netip.PrefixFrom(address, bits).Masked()}
}

// recent is a set whose members expire knownFor after they were last added.
type recent struct {
	members *cache.LRUExpireCache
}

func newRecent() recent {
	return recent{members: cache.NewLRUExpireCache(maxRemembered)}
}

func (r recent) add(member any) {
	r.members.Add(member, nil, knownFor)
}

func (r recent) has(member any) bool {
	_, ok := r.members.Get(member)
	return ok
}

// shares holds a rate limit for each client, so that none can use up another's.
type shares struct {
	perSecond float32
	atOnce    int

	mu       sync.Mutex
	limiters *cache.LRUExpireCache
}

func newShares(perSecond float32, atOnce int) *shares {
	return &shares{perSecond: perSecond, atOnce: atOnce, limiters: cache.NewLRUExpireCache(maxRemembered)}
}

// take takes one from a client's share, and reports whether there was any left.
func (s *shares) take(whose any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter, ok := s.limiters.Get(whose)
	if !ok {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiter(s.perSecond, s.atOnce)
	}
	// After this time without use a limiter is full again, like a new one.
	untilFull := time.Duration(float32(s.atOnce) / s.perSecond * float32(time.Second))
	s.limiters.Add(whose, limiter, untilFull)
	return limiter.(flowcontrol.PassiveRateLimiter).TryAccept()
}
