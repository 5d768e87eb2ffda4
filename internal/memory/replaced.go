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
// script, a restore. They would otherwise set the pace, a write and an Event for each of
// theirs. The pauses are those of repairs. It is safe for concurrent use.
type Replaced struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	byKey map[cache.ObjectName]sameStatuses
}

// sameStatuses is a series of writes of the same status.
type sameStatuses struct {
	owner  types.UID
	status uint64 // its hash
	count  int
	// last is when the last was written, from the first on that the next has to wait for.
	last time.Time
}

// Wait returns how long a status has to wait, because somebody replaces it each time.
func (r *Replaced) Wait(after plan.Owner) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	series := r.byKey[cache.MetaObjectToName(after)]
	if series.last.IsZero() || series.owner != after.GetUID() || series.status != hashOf(after) {
		return 0
	}
	if r.Clock.Since(series.last) >= Lasting(series.count) {
		delete(r.byKey, cache.MetaObjectToName(after))
		return 0
	}
	return max(0, Pause(series.count)-r.Clock.Since(series.last))
}

// Observe records a status that was stored.
func (r *Replaced) Observe(after plan.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, status := cache.MetaObjectToName(after), hashOf(after)
	series := r.byKey[key]
	if series.owner != after.GetUID() || series.status != status {
		series = sameStatuses{owner: after.GetUID(), status: status}
	}
	if series.count++; Pause(series.count) > 0 {
		series.last = r.Clock.Now()
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
	r.byKey[key] = series
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
