// SPDX-License-Identifier: Apache-2.0

// Writes that others undo each time: repairs and statuses.

package memory

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/plan"
)

const (
	// freeRepairs is how many repairs in a row are made without a pause. One more is a fight.
	freeRepairs = 3
	// firstPause is the time between the last of these and the next repair. It doubles each
	// time, up to lastPause.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// DefaultFightPeriod is the minimum time that a write has to last to end a series. It is longer
	// than the pauses of an opponent that also backs off.
	DefaultFightPeriod = time.Minute
)

// Series is a series of writes, each of which another client has undone: repairs of an object for one
// spec of its owner, or statuses that were replaced. An opponent, such as a second installation with
// another image, would otherwise set the pace: a write for each of its writes. The object is known by
// its name: one that is deleted after each creation always has another UID.
type Series struct {
	what       string
	generation int64
	count      int
	// last is the time of the last write.
	last time.Time
	// undone is true if the last write is known to have been undone.
	undone bool
	fight  plan.Fight
}

// pause returns the time between the last write and the next.
func (s *Series) pause() time.Duration {
	if s.count < freeRepairs {
		return 0
	}
	pause := firstPause
	for i := freeRepairs; i < s.count && pause < lastPause; i++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

// left returns how much longer the last write has to last to end the series: period, or twice the
// pause.
func (s *Series) left(period time.Duration, now time.Time) time.Duration {
	return s.last.Add(max(period, 2*s.pause())).Sub(now)
}

// hasEnded reports whether the last write has lasted, or was for another spec of the owner.
func (s *Series) hasEnded(owner metav1.Object, period time.Duration, now time.Time) bool {
	return s.generation != owner.GetGeneration() || !s.undone && s.left(period, now) <= 0
}

// Forget ends the series.
func (s *Series) Forget() { *s = Series{what: s.what} }

// Observe records a repair: what was repaired, and who made it necessary.
func (s *Series) Observe(owner metav1.Object, fight plan.Fight, now time.Time) {
	if s.generation != owner.GetGeneration() {
		*s = Series{what: s.what, generation: owner.GetGeneration()}
	}
	s.count, s.last, s.undone, s.fight = s.count+1, now, false, fight
}

// Undo records that the last repair, if there was one, was undone.
func (s *Series) Undo() { s.undone = s.count > 0 }

// Last records that the last repair was not undone: only a stale cache has said so.
func (s *Series) Last() { s.undone = false }

// Wait returns how long the next write has to wait.
func (s *Series) Wait(now time.Time) time.Duration { return max(0, s.last.Add(s.pause()).Sub(now)) }

// Fight returns the fight if another client undoes each repair, else nil, and how much longer the
// last repair has to last to end it. told is true if the owner's status already says so: the
// opponent may be another controller of the same owners, and two that disagree would replace each
// other's status as fast as the API server responds.
func (s *Series) Fight(told bool, period time.Duration, now time.Time) (fight *plan.Fight, left time.Duration) {
	if s.count > freeRepairs || s.count == freeRepairs && s.undone || s.count > 1 && told {
		return new(s.fight), s.left(period, now)
	}
	return nil, 0
}

// Count returns how many repairs there are in the series.
func (s *Series) Count() int { return s.count }

const (
	// reportedAfter is how many repairs because of the same client are reported, however long each
	// lasts.
	reportedAfter = 3
	// recursWithin is the longest time between two of them.
	recursWithin = 2 * time.Hour
	// mostOpponents bounds the number of objects whose opponents are remembered. Beyond that,
	// Opponents forgets some of them.
	mostOpponents = 4096
)

// Opponents remembers for hours who has made repairs necessary. A client that acts at intervals
// longer than a fight's, such as a downscaler or a GitOps tool, is repaired at once each time, and
// each time the Pods are replaced. It is safe for concurrent use.
type Opponents struct {
	Clock clock.PassiveClock

	mu       sync.Mutex
	byObject map[string]Series
}

// Observe records a repair, and reports whether the same client has made the same necessary again
// and again.
func (o *Opponents) Observe(owner metav1.Object, kind string, fight plan.Fight) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, now := fmt.Sprint(owner.GetUID(), " ", kind, " ", fight.Name), o.Clock.Now()
	is := o.byObject[key]
	if is.fight.Write != fight.Write || is.fight.By != fight.By || now.Sub(is.last) > recursWithin {
		is = Series{}
	}
	is.fight, is.count, is.last = fight, is.count+1, now
	if o.byObject == nil {
		o.byObject = map[string]Series{}
	}
	if _, known := o.byObject[key]; !known && len(o.byObject) >= mostOpponents {
		for other := range o.byObject {
			delete(o.byObject, other) // any: one that goes on soon returns
			break
		}
	}
	o.byObject[key] = is
	return is.count >= reportedAfter
}

// mostReplaced bounds the number of owners whose last status is remembered. Beyond that,
// Replaced forgets some of them.
const mostReplaced = 4096

// Replaced remembers the status that was last written for each owner, and how often in a row. A
// status that has to be written again was replaced by another client: a second installation,
// a script, a restore. The pauses are the same as for repairs. It is safe for concurrent use.
type Replaced struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	byKey map[cache.ObjectName]Series // the last write is zero while the next need not wait
}

// Wait returns how long a status has to wait because another client replaces it each time.
func (r *Replaced) Wait(after plan.Owner) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	written := r.byKey[cache.MetaObjectToName(after)]
	if written.last.IsZero() || written.what != statusOf(after) {
		return 0
	}
	return written.Wait(r.Clock.Now())
}

// Observe records a status that was stored.
func (r *Replaced) Observe(after plan.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, status, now := cache.MetaObjectToName(after), statusOf(after), r.Clock.Now()
	written := r.byKey[key]
	if written.what != status || !written.last.IsZero() && written.left(DefaultFightPeriod, now) <= 0 {
		written = Series{what: status}
	}
	if written.count++; written.pause() > 0 {
		written.last = now
	}
	if r.byKey == nil {
		r.byKey = map[cache.ObjectName]Series{}
	}
	if _, known := r.byKey[key]; !known && len(r.byKey) >= mostReplaced {
		for other := range r.byKey {
			delete(r.byKey, other) // any: a series that continues soon returns
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

// statusOf identifies a status, without the times of its conditions, of one owner.
func statusOf(owner plan.Owner) string {
	text, err := json.Marshal(withoutTimes(owner).GetStatus())
	if err != nil {
		panic(err) // a status is always JSON
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	return fmt.Sprint(owner.GetUID(), " ", hash.Sum64())
}
