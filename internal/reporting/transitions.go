// SPDX-License-Identifier: Apache-2.0

// Transitions of the condition Ready whose Event is not recorded yet.

package reporting

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/keyed"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Transitions remembers the last change of a Foo's readiness that was sent, until the
// cache shows whether it was stored. The answer to a status write can be lost. If the
// write was stored nevertheless, its Event is recorded then. Each transition has one
// Event, unless the controller dies between the two, or another one replaces the status
// before a sync has seen it.
type Transitions struct {
	keyed.Map[transition]
}

// transition are the status writes that change a Foo's readiness and were made from one
// version of the Foo. The API server stores at most one of them.
type transition struct {
	foo types.UID
	// from is that version, as a resourceVersion.
	from string
	// unanswered are the conditions that were sent and may have been stored. There are
	// none once the transition has its Event.
	unanswered []readiness
}

// readiness identifies a condition Ready. The time, in seconds as it is stored,
// distinguishes it from what another controller writes.
type readiness struct {
	status     metav1.ConditionStatus
	reason     string
	generation int64
	since      int64
}

func readinessOf(ready *metav1.Condition) readiness {
	return readiness{ready.Status, ready.Reason, ready.ObservedGeneration, ready.LastTransitionTime.Unix()}
}

// Stored records that a write was answered, so that its Event is recorded.
func (t *Transitions) Stored(foo *samplev1alpha1.Foo) {
	t.Set(cache.MetaObjectToName(foo), transition{foo: foo.UID, from: foo.ResourceVersion})
}

// Unknown records a write that may or may not have been stored.
func (t *Transitions) Unknown(foo *samplev1alpha1.Foo, ready metav1.Condition) {
	key := cache.MetaObjectToName(foo)
	known, ok := t.Get(key)
	sent := readinessOf(&ready)
	switch {
	case !ok || known.from != foo.ResourceVersion:
		t.Set(key, transition{foo.UID, foo.ResourceVersion, []readiness{sent}})
	case len(known.unanswered) == 0:
		// Another from the same version was stored, so this one was not.
	case !slices.Contains(known.unanswered, sent):
		t.Set(key, transition{known.foo, known.from, append(slices.Clip(known.unanswered), sent)})
	}
}

// Missed returns the condition Ready of a cached Foo if it has no Event yet, else nil.
func (t *Transitions) Missed(foo *samplev1alpha1.Foo) *metav1.Condition {
	key := cache.MetaObjectToName(foo)
	known, ok := t.Get(key)
	if !ok || known.from == foo.ResourceVersion {
		return nil // the cache does not show it yet
	}
	t.Delete(key)
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || known.foo != foo.UID || !slices.Contains(known.unanswered, readinessOf(ready)) {
		return nil
	}
	return ready
}
