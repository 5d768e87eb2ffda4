// SPDX-License-Identifier: Apache-2.0

// Statuses that somebody replaces each time.

package memory

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/plan"
)

// mostReplaced bounds of how many owners the last status is known. Of more, those that were
// written last are.
const mostReplaced = 4096

// Replaced remembers which status was last written for owners, and how often in a row. A
// status that has to be written again was replaced by somebody: a second installation, a
// script, a restore. The pauses are those of repairs. It is safe for concurrent use.
type Replaced struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	byKey map[cache.ObjectName]sameStatuses
}

// sameStatuses is a series of writes of the same status. The last one has no time while the next
// need not wait.
type sameStatuses struct {
	series

	owner  types.UID
	status uint64 // its hash
}

// Wait returns how long a status has to wait, because somebody replaces it each time.
func (r *Replaced) Wait(after plan.Owner) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	written, now := r.byKey[cache.MetaObjectToName(after)], r.Clock.Now()
	if written.last.IsZero() || written.owner != after.GetUID() || written.status != hashOf(after) {
		return 0
	}
	if written.left(now) <= 0 {
		delete(r.byKey, cache.MetaObjectToName(after))
	}
	return written.wait(now)
}

// Observe records a status that was stored.
func (r *Replaced) Observe(after plan.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, status := cache.MetaObjectToName(after), hashOf(after)
	written := r.byKey[key]
	if written.owner != after.GetUID() || written.status != status {
		written = sameStatuses{owner: after.GetUID(), status: status}
	}
	if written.count++; written.pause() > 0 {
		written.last = r.Clock.Now()
	}
	if r.byKey == nil {
		r.byKey = map[cache.ObjectName]sameStatuses{}
	}
	if len(r.byKey) >= mostReplaced {
		for other := range r.byKey {
			delete(r.byKey, other) // any: a series that goes on is soon back
			break
		}
	}
	r.byKey[key] = written
}

// Forget forgets an owner that is gone.
func (r *Replaced) Forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// hashOf identifies a status, without the times of its conditions.
func hashOf(owner plan.Owner) uint64 {
	text, err := json.Marshal(withoutTimes(owner).GetStatus())
	if err != nil {
		panic(err) // a status is always JSON
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	return hash.Sum64()
}
