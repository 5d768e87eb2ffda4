// SPDX-License-Identifier: Apache-2.0

// What others do to children: repairs that somebody undoes each time, and what admission
// changes.

package consistency

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/keyed"
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

// Repairs remembers, for each Foo, how often in a row its child was repaired and changed
// back. An opponent, such as a second installation with another image, would otherwise set
// the pace: two writes and a rollout for each of its own.
type Repairs struct {
	Clock clock.PassiveClock
	keyed.Map[repairs]
}

// repairs is a series of repairs of one child for one spec of the Foo.
type repairs struct {
	owner, child types.UID
	generation   int64
	count        int
	// last is when the last repair was made, and undone whether it was seen to be undone.
	last      time.Time
	undone    bool
	by, drift string
}

func (r *Repairs) of(owner, child metav1.Object) (repairs, bool) {
	series, known := r.Get(cache.MetaObjectToName(owner))
	known = known && series.owner == owner.GetUID() && series.child == child.GetUID() && series.generation == owner.GetGeneration()
	return series, known
}

// Observe records a repair: who had made it necessary, and in what.
func (r *Repairs) Observe(owner, child metav1.Object, by, drift string) {
	series, known := r.of(owner, child)
	if !known {
		series = repairs{owner: owner.GetUID(), child: child.GetUID(), generation: owner.GetGeneration()}
	}
	series.count, series.last, series.undone, series.by, series.drift = series.count+1, r.Clock.Now(), false, by, drift
	r.Set(cache.MetaObjectToName(owner), series)
}

// Wait returns how long the next repair of a child that has drifted has to wait.
func (r *Repairs) Wait(owner, child metav1.Object) time.Duration {
	series, known := r.of(owner, child)
	if !known {
		return 0
	}
	if !series.undone {
		if r.Clock.Since(series.last) >= series.lasting() {
			r.Delete(cache.MetaObjectToName(owner))
			return 0
		}
		series.undone = true
		r.Set(cache.MetaObjectToName(owner), series)
	}
	if series.count < freeRepairs {
		return 0
	}
	return max(0, series.last.Add(series.pause()).Sub(r.Clock.Now()))
}

// pause returns the time between the last repair and the next.
func (s *repairs) pause() time.Duration {
	pause := firstPause
	for i := freeRepairs; i < s.count && pause < lastPause; i++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

// lasting returns how long the last repair has to last to end the series.
func (s *repairs) lasting() time.Duration { return max(quiet, 2*s.pause()) }

// Fight reports whether somebody changes a child back after each repair, and if so, who,
// what, and how long the last repair still has to last to end the fight. told is whether the
// Foo's status says so already: the opponent may be another controller of the same Foos, and
// two that do not agree would replace each other's status as fast as the API server answers.
func (r *Repairs) Fight(owner, child metav1.Object, told bool) (by, drift string, left time.Duration, fights bool) {
	series, known := r.of(owner, child)
	if !known {
		return "", "", 0, false
	}
	left = series.lasting() - r.Clock.Since(series.last)
	if !series.undone && left <= 0 {
		r.Delete(cache.MetaObjectToName(owner))
		return "", "", 0, false
	}
	fights = series.count > freeRepairs || series.count == freeRepairs && series.undone || series.count > 1 && told
	return series.by, series.drift, left, fights
}

// AdmissionMutations remembers, for each Foo, a child that the API server stored
// otherwise than it was sent, as an admission webhook can make it do: one that puts a
// mirror's name before each image, for example. Sending the same again would have the
// same result, at each resync and for ever.
//
// An entry is valid until somebody changes what the Foo or the child asks for. It
// does not survive a restart.
type AdmissionMutations struct {
	keyed.Map[mutation]
}

// mutation is the state of both objects in which an update is useless.
type mutation struct {
	owner, child                   types.UID
	fooGeneration, childGeneration int64
	// childVersion is the resourceVersion of a child whose kind has no generation.
	childVersion string
	// differs says in what the child differs from what the Foo asks for. After a
	// restore of etcd a generation can occur twice, with another spec.
	differs string
}

func mutationOf(owner metav1.Object, child metav1.Object, differs string) mutation {
	known := mutation{
		owner: owner.GetUID(), fooGeneration: owner.GetGeneration(),
		child: child.GetUID(), childGeneration: child.GetGeneration(),
		differs: differs,
	}
	if known.childGeneration == 0 {
		known.childVersion = child.GetResourceVersion()
	}
	return known
}

// Observe records how a child that was stored differs from what the Foo asks for, "" if
// it does not.
func (o *AdmissionMutations) Observe(owner metav1.Object, stored metav1.Object, differs string) {
	if differs != "" {
		o.Set(cache.MetaObjectToName(owner), mutationOf(owner, stored, differs))
	} else {
		o.Delete(cache.MetaObjectToName(owner))
	}
}

// WouldRecur reports whether an update of a Foo's child would be changed in the same way
// again.
func (o *AdmissionMutations) WouldRecur(owner metav1.Object, child metav1.Object, differs string) bool {
	known, ok := o.Get(cache.MetaObjectToName(owner))
	return ok && known == mutationOf(owner, child, differs)
}
