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
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// knownFor is how long a client counts as known after its last request that
	// the gate let through: longer than any usual time between two scrapes.
	knownFor = time.Hour
	// maxRemembered bounds each of the tables here: more clients than a
	// controller has, and less than 1 MiB.
	maxRemembered = 1000
)

// origin is where a client connects from.
type origin struct {
	address netip.Addr
	// network is what somebody may have to themselves: in IPv6 a /64, whose
	// addresses are as good as one. The Pods of a node may share a /64, so a
	// known client is recognized by its address.
	network netip.Prefix
}

// originOf parses the HOST:PORT of a client. What is no address is one origin.
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

// recent is a set whose members leave it when they have not been added again
// for knownFor.
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

// shares is a rate limit for each of many, so that nobody can use up what is
// another's.
type shares struct {
	perSecond float32
	atOnce    int

	mu       sync.Mutex
	limiters *cache.LRUExpireCache
}

func newShares(perSecond float32, atOnce int) *shares {
	return &shares{perSecond: perSecond, atOnce: atOnce, limiters: cache.NewLRUExpireCache(maxRemembered)}
}

// take uses up a part of whose share, or reports that there is nothing left of it.
func (s *shares) take(whose any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter, ok := s.limiters.Get(whose)
	if !ok {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiter(s.perSecond, s.atOnce)
	}
	// A limiter that nobody asks is full after this time, as a new one is.
	untilFull := time.Duration(float32(s.atOnce) / s.perSecond * float32(time.Second))
	s.limiters.Add(whose, limiter, untilFull)
	return limiter.(flowcontrol.PassiveRateLimiter).TryAccept()
}
