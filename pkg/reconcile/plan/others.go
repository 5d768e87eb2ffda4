// SPDX-License-Identifier: Apache-2.0

// Kinds that aren't the program's own, such as Namespace: there is no field of a spec to ask for anything, and no
// status to report in.

package plan

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Others is an owner of a kind that isn't the program's own. Decisions read only the fields that Kind.Keep copies,
// which stand for its spec: another value of them is another generation. Its status is never written. It says that the
// owner is ready, so that nothing is confirmed for it; what keeps it from being ready is told in Events.
type Others struct {
	Object

	read       Object
	request    string
	generation int64
	conditions []metav1.Condition
	status     struct{}
}

// IsOthers reports whether the kind isn't the program's own.
func (k *Kind) IsOthers() bool { return k.Keep != nil }

// others returns an object of the kind as an owner. keep copies what the cache keeps of it.
func (k *Kind) others(found Object, keep func(kept, found Object)) *Others {
	o := &Others{Object: emptyLike(found), read: emptyLike(found), request: k.requestOf(found)}
	keepIdentity(o.Object, found)
	keep(o.Object, found)
	k.Keep(o.read, found)
	if o.request != "" {
		annotate(o.Object, k.SyncRequested(), o.request)
	}
	text, err := json.Marshal(o.read)
	if err != nil {
		panic(err) // an object of the API is always JSON
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	o.generation = int64(hash.Sum64()%math.MaxInt64) + 1
	o.conditions = []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: o.generation}}
	return o
}

// GetSpec returns what decisions read.
func (o *Others) GetSpec() any { return o.read }

// GetStatus returns an empty status, which is never written.
func (o *Others) GetStatus() any { return &o.status }

// IsSuspended returns false: nothing in the object says so.
func (o *Others) IsSuspended() bool { return false }

// GetGeneration returns a number that changes with what decisions read.
func (o *Others) GetGeneration() int64 { return o.generation }

// GetConditions returns the conditions.
func (o *Others) GetConditions() []metav1.Condition { return o.conditions }

// SetConditions sets the conditions, until the end of a sync.
func (o *Others) SetConditions(conditions []metav1.Condition) { o.conditions = conditions }

// GetObservedGeneration returns the generation.
func (o *Others) GetObservedGeneration() int64 { return o.generation }

// SetObservedGeneration does nothing.
func (o *Others) SetObservedGeneration(int64) {}

// GetLastHandledSync returns the request of the object's annotation: nothing answers it.
func (o *Others) GetLastHandledSync() string { return o.request }

// SetLastHandledSync does nothing.
func (o *Others) SetLastHandledSync(string) {}

// ResetProgress does nothing.
func (o *Others) ResetProgress() {}

// DeepCopyObject implements runtime.Object.
func (o *Others) DeepCopyObject() runtime.Object {
	c := *o
	c.Object, c.read = CopyOf(o.Object), CopyOf(o.read)
	c.conditions = append([]metav1.Condition(nil), o.conditions...)
	return &c
}

// Subject returns what an Event about an owner refers to.
func (k *Kind) Subject(owner Owner) runtime.Object {
	if !k.IsOthers() {
		return owner
	}
	return &corev1.ObjectReference{
		APIVersion: k.Resource.GroupVersion().String(), Kind: k.Name, Namespace: owner.GetNamespace(), Name: owner.GetName(), UID: owner.GetUID(),
	}
}

// typed returns an owner as an author declares it.
func typed[F Object](owner Owner) F {
	if of, ok := owner.(*Others); ok {
		return of.Object.(F) //nolint:forcetypeassert // the kind's type
	}
	return any(owner).(F) //nolint:forcetypeassert // the kind's type
}

// OfItself returns the row of fields of the owner itself, for a kind that isn't the program's own.
func (r Row[F, T]) OfItself(owner *Kind) *ChildKind {
	r.Namespace = func(object F) string { return object.GetNamespace() }
	r.Name, r.Names, r.Wanted = func(object F) string { return object.GetName() }, nil, nil
	c := r.Of(owner)
	c.isItself = true
	if r.Init != nil || r.Serves != nil || r.Inherit != nil || reflect.TypeFor[F]() != reflect.TypeFor[T]() {
		c.flaws = append(c.flaws, "is of the owner itself, which nothing creates or replaces")
	}
	return c
}

// IsItself reports whether the row is one of fields of the owner itself.
func (c *ChildKind) IsItself() bool { return c.isItself }
