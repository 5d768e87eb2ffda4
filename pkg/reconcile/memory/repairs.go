// SPDX-License-Identifier: Apache-2.0

// Writes that others undo or change each time: repairs, statuses, and updates that admission
// changes.

package memory

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// series counts writes in a row, each of which another client has undone. An opponent, such as a
// second installation with another image, would otherwise set the pace: a write for each of its
// writes.
type series struct {
	count int
	// last is the time of the last write.
	last time.Time
}

// pause returns the time between the last write and the next.
func (s *series) pause() time.Duration {
	if s.count < freeRepairs {
		return 0
	}
	pause := firstPause
	for i := freeRepairs; i < s.count && pause < lastPause; i++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

// wait returns how long the next write has to wait.
func (s *series) wait(now time.Time) time.Duration { return max(0, s.last.Add(s.pause()).Sub(now)) }

// left returns how much longer the last write has to last to end the series: period, or twice the
// pause.
func (s *series) left(period time.Duration, now time.Time) time.Duration {
	return s.last.Add(max(period, 2*s.pause())).Sub(now)
}

// Repairs is a series of repairs of one object, for one spec of its owner, each of which another
// client has undone. The object is known by its name: one that is deleted after each creation
// always has another UID.
type Repairs struct {
	series

	what       string
	generation int64
	// undone is true if the last repair is known to have been undone.
	undone bool
	fight  plan.Fight
}

// goesOn reports whether there is a series. It forgets one whose last repair has lasted.
func (r *Repairs) goesOn(owner metav1.Object, period time.Duration, now time.Time) bool {
	if r.generation != owner.GetGeneration() {
		return false
	}
	if !r.undone && r.left(period, now) <= 0 {
		r.Forget()
	}
	return r.count > 0
}

// Forget ends the series.
func (r *Repairs) Forget() { *r = Repairs{what: r.what} }

// Observe records a repair: what was repaired, and who made it necessary.
func (r *Repairs) Observe(owner metav1.Object, fight plan.Fight, now time.Time) {
	if r.generation != owner.GetGeneration() {
		*r = Repairs{what: r.what, generation: owner.GetGeneration()}
	}
	r.count, r.last, r.undone, r.fight = r.count+1, now, false, fight
}

// Wait returns how long the next repair has to wait. Call it when the last one was undone.
func (r *Repairs) Wait(owner metav1.Object, period time.Duration, now time.Time) time.Duration {
	if !r.goesOn(owner, period, now) {
		return 0
	}
	r.undone = true
	return r.wait(now)
}

// Fight returns the fight if another client undoes each repair, else nil, and how much longer the
// last repair has to last to end it. told is true if the owner's status already says so: the
// opponent may be another controller of the same owners, and two that disagree would replace each
// other's status as fast as the API server responds.
func (r *Repairs) Fight(owner metav1.Object, told bool, period time.Duration, now time.Time) (fight *plan.Fight, left time.Duration) {
	if !r.goesOn(owner, period, now) {
		return nil, 0
	}
	if r.count > freeRepairs || r.count == freeRepairs && r.undone || r.count > 1 && told {
		return new(r.fight), r.left(period, now)
	}
	return nil, 0
}

// Count returns how many repairs there are in the series for an owner's newest spec.
func (r *Repairs) Count(owner metav1.Object) int {
	if r.generation != owner.GetGeneration() {
		return 0
	}
	return r.count
}

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
	byObject map[opponentKey]opponent
}

// opponentKey identifies an object by its owner and its name.
type opponentKey struct {
	owner      types.UID
	kind, name string
}

type opponent struct {
	write plan.Action
	by    plan.Manager
	count int
	last  time.Time
}

// Observe records a repair, and reports whether the same client has made the same necessary again
// and again.
func (o *Opponents) Observe(owner metav1.Object, kind string, fight plan.Fight) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, now := opponentKey{owner.GetUID(), kind, fight.Name}, o.Clock.Now()
	is := o.byObject[key]
	if is.write != fight.Write || is.by != fight.By || now.Sub(is.last) > recursWithin {
		is = opponent{write: fight.Write, by: fight.By}
	}
	is.count, is.last = is.count+1, now
	if o.byObject == nil {
		o.byObject = map[opponentKey]opponent{}
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
	byKey map[cache.ObjectName]sameStatuses
}

// sameStatuses is a series of writes of the same status. last is zero while the next write need
// not wait.
type sameStatuses struct {
	series

	owner  types.UID
	status uint64 // its hash
}

// Wait returns how long a status has to wait because another client replaces it each time.
func (r *Replaced) Wait(after plan.Owner) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	written, now := r.byKey[cache.MetaObjectToName(after)], r.Clock.Now()
	if written.last.IsZero() || written.owner != after.GetUID() || written.status != hashOf(after) {
		return 0
	}
	if written.left(DefaultFightPeriod, now) <= 0 {
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

// hashOf returns a hash of a status without the times of its conditions.
func hashOf(owner plan.Owner) uint64 {
	text, err := json.Marshal(withoutTimes(owner).GetStatus())
	if err != nil {
		panic(err) // a status is always JSON
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	return hash.Sum64()
}

// Mutation is the state of an owner and its child in which an update is useless, because the
// API server did not store the last one as sent. An admission webhook can cause this, for
// example one that prefixes each image with a mirror's name. Sending the same again would
// have the same result, at each resync and forever.
//
// It is valid until the owner's or the child's desired state changes.
type Mutation struct {
	child           types.UID
	ownerGeneration int64
	childVersion    string
	// differs describes how the child differs from its desired state. After a restore of
	// etcd, a generation can occur twice, with another spec.
	differs string
}

// MutationOf returns the Mutation of a stored child that differs from its desired state, or
// the zero Mutation if it does not differ.
func MutationOf(owner, child metav1.Object, differs string) Mutation {
	if differs == "" {
		return Mutation{}
	}
	return Mutation{child.GetUID(), owner.GetGeneration(), plan.VersionOf(child), differs}
}

// WouldRecur reports whether an update of a child would again be changed in the same way.
func (m Mutation) WouldRecur(owner, child metav1.Object, differs string) bool {
	return differs != "" && m == MutationOf(owner, child, differs)
}
