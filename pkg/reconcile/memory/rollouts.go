// SPDX-License-Identifier: Apache-2.0

// Which owners are rolling out.

package memory

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// rolloutTimeout is how long a rollout counts. Otherwise a rollout whose Pods never become
// available would stop all others.
const rolloutTimeout = 10 * time.Minute

// Rollouts bounds how many owners restart their Pods at the same time for a reason other than a
// change of their spec, such as another -image. A namespace has at most half of them, so that
// a namespace whose Pods do not start does not stop the others.
type Rollouts struct {
	Clock clock.PassiveClock
	// Limit is how many owners may roll out at the same time. 0 means no limit.
	Limit int

	mu    sync.Mutex
	begun map[cache.ObjectName]time.Time
	// waiting are the owners that Begin has turned away since they last rolled out.
	waiting map[cache.ObjectName]bool
}

// Begin returns 0 if an owner may roll out now, else the time after which to call it again: all
// waiting owners together call it a hundred times a second, each at most once a second.
func (r *Rollouts) Begin(owner cache.ObjectName) time.Duration {
	if r.Limit <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == nil {
		r.begun, r.waiting = map[cache.ObjectName]time.Time{}, map[cache.ObjectName]bool{}
	}
	inNamespace := 0
	for other, since := range r.begun {
		switch {
		case r.Clock.Since(since) >= rolloutTimeout:
			delete(r.begun, other)
		case other == owner:
			return 0
		case other.Namespace == owner.Namespace:
			inNamespace++
		}
	}
	if len(r.begun) >= r.Limit || inNamespace >= max(1, r.Limit/2) {
		r.waiting[owner] = true
		return max(time.Second, time.Duration(len(r.waiting))*(time.Second/100))
	}
	delete(r.waiting, owner)
	r.begun[owner] = r.Clock.Now()
	return 0
}

// End records that an owner is not, or no longer, rolling out.
func (r *Rollouts) End(owner cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, owner)
	delete(r.waiting, owner)
}
