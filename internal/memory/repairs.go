// SPDX-License-Identifier: Apache-2.0

// What others do to children: repairs that somebody undoes each time, and what admission
// changes.

package memory

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
