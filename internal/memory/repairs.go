// SPDX-License-Identifier: Apache-2.0

// What others undo or change each time: repairs, statuses, and what admission changes.

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

	"example.com/sample-controller/internal/plan"
)

const (
	// freeRepairs is how many repairs in a row are made at once. One more is a fight.
	freeRepairs = 3
	// firstPause is the time between that and the next repair. It doubles each time, up to
	// lastPause.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// quiet is how long a repair has to last to end the series, at least: it is longer than
	// the pause of an opponent who is damped, too.
	quiet = time.Minute
)

// series counts writes in a row, each of which somebody has undone. An opponent, such as a second
// installation with another image, would otherwise set the pace: a write for each of its own.
type series struct {
	count int
	// last is when the last write was made.
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

// left returns how long the last write still has to last to end the series.
func (s *series) left(now time.Time) time.Duration {
	return s.last.Add(max(quiet, 2*s.pause())).Sub(now)
}

// Repairs is a series of repairs of one child, for one spec of its owner, each of which
// somebody has changed back.
type Repairs struct {
	series

	child      types.UID
	generation int64
	// undone is whether the last repair was seen to be undone.
	undone    bool
	by, drift string
}

// goesOn reports whether there is a series about a child. One that has lasted is forgotten.
func (r *Repairs) goesOn(owner, child metav1.Object, now time.Time) bool {
	if r.child != child.GetUID() || r.generation != owner.GetGeneration() {
		return false
	}
	if !r.undone && r.left(now) <= 0 {
		*r = Repairs{}
	}
	return r.count > 0
}

// Observe records a repair: who had made it necessary, and in what.
func (r *Repairs) Observe(owner, child metav1.Object, by, drift string, now time.Time) {
	if r.child != child.GetUID() || r.generation != owner.GetGeneration() {
		*r = Repairs{child: child.GetUID(), generation: owner.GetGeneration()}
	}
	r.count, r.last, r.undone, r.by, r.drift = r.count+1, now, false, by, drift
}

// Wait returns how long the next repair of a child that has drifted has to wait.
func (r *Repairs) Wait(owner, child metav1.Object, now time.Time) time.Duration {
	if !r.goesOn(owner, child, now) {
		return 0
	}
	r.undone = true
	return r.wait(now)
}

// Fight reports whether somebody changes a child back after each repair, and if so, who,
// what, and how long the last repair still has to last to end the fight. told is whether the
// owner's status says so already: the opponent may be another controller of the same owners,
// and two that do not agree would replace each other's status as fast as the API server
// answers.
func (r *Repairs) Fight(owner, child metav1.Object, told bool, now time.Time) (by, drift string, left time.Duration, fights bool) {
	if !r.goesOn(owner, child, now) {
		return "", "", 0, false
	}
	fights = r.count > freeRepairs || r.count == freeRepairs && r.undone || r.count > 1 && told
	return r.by, r.drift, r.left(now), fights
}

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

// Mutation is the state of an owner and its child in which an update is useless, because the
// API server stored the last one otherwise than it was sent, as an admission webhook can make
// it do: one that puts a mirror's name before each image, for example. Sending the same again
// would have the same result, at each resync and for ever.
//
// It is valid until somebody changes what the owner or the child asks for.
type Mutation struct {
	child           types.UID
	ownerGeneration int64
	childVersion    string
	// differs says in what the child differs from what the owner asks for. After a
	// restore of etcd a generation can occur twice, with another spec.
	differs string
}

// MutationOf returns how a child that was stored differs from what its owner asks for: the
// zero Mutation if it does not.
func MutationOf(owner, child metav1.Object, differs string) Mutation {
	if differs == "" {
		return Mutation{}
	}
	return Mutation{child.GetUID(), owner.GetGeneration(), plan.VersionOf(child), differs}
}

// WouldRecur reports whether an update of a child would be changed in the same way again.
func (m Mutation) WouldRecur(owner, child metav1.Object, differs string) bool {
	return differs != "" && m == MutationOf(owner, child, differs)
}
