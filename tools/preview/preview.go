// SPDX-License-Identifier: Apache-2.0

// Package preview says what the next sync of a Foo would write. It takes the decisions
// from internal/plan, as the controller does, and its inputs from a list of objects.
// It knows neither what the controller remembers between syncs, nor what the API server
// would say to a write.
package preview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/reporting"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Verb is what a write does.
type Verb string

// The verbs of writes. An adoption is an update that makes the Foo the controller of an
// object, and Leave is a write that the controller does not make, because the object of the
// name belongs to somebody else, and Suspend one that it does not make while the Foo is
// suspended.
const (
	Create  Verb = "create"
	Update  Verb = "update"
	Adopt   Verb = "adopt"
	Delete  Verb = "delete"
	Leave   Verb = "leave"
	Wait    Verb = "wait"
	Suspend Verb = "suspend"
)

// IsWrite reports whether the API server gets a request.
func (v Verb) IsWrite() bool { return v != Leave && v != Wait && v != Suspend }

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Write is what a sync does about one child.
type Write struct {
	Verb     Verb
	Kind     string
	Resource schema.GroupVersionResource
	Name     string
	// Before is the object as it is, or nil before a creation. After is the object as it
	// is sent, or nil after a deletion, and if there is no write.
	Before, After Object
	// Drift says in which fields that the Foo owns Before differs from what the Foo asks for.
	Drift string

	driftOf func(stored Object) string
	patch   func() (types.PatchType, []byte, error)
}

// DriftOf says in which fields that the Foo owns a stored object differs from what the Foo
// asks for, as after an admission webhook, or returns "".
func (w *Write) DriftOf(stored Object) string { return w.driftOf(stored) }

// Patch returns the patch that the sync sends to update or adopt the child.
func (w *Write) Patch() (types.PatchType, []byte, error) { return w.patch() }

// Sync is what a sync of a Foo would write.
type Sync struct {
	Foo *samplev1alpha1.Foo
	// Writes are those of children, in order.
	Writes []Write
	// Status is the Foo's status afterwards, with the condition's times of the Foo where
	// they do not change.
	Status samplev1alpha1.FooStatus
}

// ChangesStatus reports whether the status differs from the Foo's.
func (s *Sync) ChangesStatus() bool {
	return !equality.Semantic.DeepEqual(s.Foo.Status, s.Status)
}

// StatusMayWait reports whether the status tells of nothing but a rollout's progress, which
// the controller does not write at once.
func (s *Sync) StatusMayWait() bool {
	return s.ChangesStatus() && reporting.MayWait(s.Foo.Status, s.Status, true)
}

// IsIdle reports whether the sync writes nothing.
func (s *Sync) IsIdle() bool {
	return !s.ChangesStatus() && !slices.ContainsFunc(s.Writes, func(w Write) bool { return w.Verb.IsWrite() })
}

// Of returns what a sync of a Foo would write. now becomes the time of the condition's
// transition if there is one.
func Of(table []Row, foo *samplev1alpha1.Foo, world *World, now metav1.Time) *Sync {
	foo = kept(foo)
	sync, seen, blocked := &Sync{Foo: foo}, plan.Seen{}, false
	var outcomes []plan.Outcome
	var obsolete [][]Write
	for _, row := range table {
		s := row.sync(foo, world, seen, blocked)
		if s.write != nil {
			sync.Writes = append(sync.Writes, *s.write)
		}
		outcomes, obsolete = append(outcomes, s.outcome), append(obsolete, s.obsolete)
		blocked = blocked || s.blocks
	}
	if !blocked {
		for _, deletions := range slices.Backward(obsolete) {
			sync.Writes = append(sync.Writes, deletions...)
		}
	}
	sync.Status = plan.CalculateStatus(foo, outcomes, now)
	return sync
}

// kept returns what the controller's cache keeps of a Foo.
func kept(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	object, err := plan.TransformFoo(foo)
	if err != nil {
		panic(err) // it returns none for a Foo
	}
	return object.(*samplev1alpha1.Foo) //nolint:forcetypeassert // a Foo stays a Foo
}
