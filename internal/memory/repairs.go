// SPDX-License-Identifier: Apache-2.0

// What others do to children: repairs that somebody undoes each time, and what admission
// changes.

package memory

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Repairs is a series of repairs of one child, for one spec of its owner, each of which
// somebody has changed back. An opponent, such as a second installation with another image,
// would otherwise set the pace: two writes and a rollout for each of its own.
type Repairs struct {
	child      types.UID
	generation int64
	count      int
	// last is when the last repair was made, and undone whether it was seen to be undone.
	last      time.Time
	undone    bool
	by, drift string
}

func (r *Repairs) isOf(owner, child metav1.Object) bool {
	return r.count > 0 && r.child == child.GetUID() && r.generation == owner.GetGeneration()
}

// Observe records a repair: who had made it necessary, and in what.
func (r *Repairs) Observe(owner, child metav1.Object, by, drift string, now time.Time) {
	if !r.isOf(owner, child) {
		*r = Repairs{child: child.GetUID(), generation: owner.GetGeneration()}
	}
	r.count, r.last, r.undone, r.by, r.drift = r.count+1, now, false, by, drift
}

// Wait returns how long the next repair of a child that has drifted has to wait.
func (r *Repairs) Wait(owner, child metav1.Object, now time.Time) time.Duration {
	if !r.isOf(owner, child) {
		return 0
	}
	if !r.undone && now.Sub(r.last) >= Lasting(r.count) {
		*r = Repairs{}
		return 0
	}
	r.undone = true
	return max(0, r.last.Add(Pause(r.count)).Sub(now))
}

// Pause returns the time between the last of a number of repairs in a row and the next.
func Pause(count int) time.Duration {
	if count < freeRepairs {
		return 0
	}
	pause := firstPause
	for i := freeRepairs; i < count && pause < lastPause; i++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

// Lasting returns how long the last of a number of repairs has to last to end the series.
func Lasting(count int) time.Duration { return max(quiet, 2*Pause(count)) }

// Fight reports whether somebody changes a child back after each repair, and if so, who,
// what, and how long the last repair still has to last to end the fight. told is whether the
// owner's status says so already: the opponent may be another controller of the same owners,
// and two that do not agree would replace each other's status as fast as the API server
// answers.
func (r *Repairs) Fight(owner, child metav1.Object, told bool, now time.Time) (by, drift string, left time.Duration, fights bool) {
	if !r.isOf(owner, child) {
		return "", "", 0, false
	}
	left = Lasting(r.count) - now.Sub(r.last)
	if !r.undone && left <= 0 {
		*r = Repairs{}
		return "", "", 0, false
	}
	fights = r.count > freeRepairs || r.count == freeRepairs && r.undone || r.count > 1 && told
	return r.by, r.drift, left, fights
}

// Mutation is the state of an owner and its child in which an update is useless, because the
// API server stored the last one otherwise than it was sent, as an admission webhook can make
// it do: one that puts a mirror's name before each image, for example. Sending the same again
// would have the same result, at each resync and for ever.
//
// It is valid until somebody changes what the owner or the child asks for.
type Mutation struct {
	child                            types.UID
	ownerGeneration, childGeneration int64
	// childVersion is the resourceVersion of a child whose kind has no generation.
	childVersion string
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
	m := Mutation{child: child.GetUID(), ownerGeneration: owner.GetGeneration(), childGeneration: child.GetGeneration(), differs: differs}
	if m.childGeneration == 0 {
		m.childVersion = child.GetResourceVersion()
	}
	return m
}

// WouldRecur reports whether an update of a child would be changed in the same way again.
func (m Mutation) WouldRecur(owner, child metav1.Object, differs string) bool {
	return differs != "" && m == MutationOf(owner, child, differs)
}
