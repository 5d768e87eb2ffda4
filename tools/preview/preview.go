// SPDX-License-Identifier: Apache-2.0

// Package preview says what the next sync of a Foo would write. It takes the decisions
// from internal/plan, as the controller does, and its inputs from a list of objects.
// It knows neither what the controller remembers between syncs, nor what the API server
// would say to a write.
package preview

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

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

// Row is a row of the table of children.
type Row struct {
	Kind     string
	Resource schema.GroupVersionResource
	Blocks   bool
	// Empty returns a new object of the kind, and Desired the child that a Foo asks for.
	Empty   func() Object
	Desired func(foo *samplev1alpha1.Foo) Object

	sync func(foo *samplev1alpha1.Foo, world *World, seen plan.Seen, blocked bool) rowSync
}

// rowSync is a sync of a Foo's children of one kind.
type rowSync struct {
	write    *Write
	obsolete []Write
	outcome  plan.Outcome
	blocks   bool
}

// RowOf returns a row without the type of its objects.
func RowOf[T plan.Object](child plan.Child[T]) Row {
	k := kind[T]{&child}
	return Row{
		Kind: child.Kind, Resource: child.Resource, Blocks: child.Blocks,
		Empty:   func() Object { return child.Empty() },
		Desired: func(foo *samplev1alpha1.Foo) Object { return child.Desired(foo, plan.Seen{}) },
		sync:    k.sync,
	}
}

// kind is a row with the type of its objects.
type kind[T plan.Object] struct{ *plan.Child[T] }

// sync decides by what the caches would keep, and makes updates from the whole object, as
// the controller does.
func (k kind[T]) sync(foo *samplev1alpha1.Foo, world *World, seen plan.Seen, blocked bool) rowSync {
	live, _ := world.named(k.Resource, foo.Namespace, k.Name(foo)).(T)
	named := k.kept(live)
	var controlled []T
	for _, object := range world.ControlledBy(k.Resource, foo) {
		if child, ok := object.(T); ok {
			controlled = append(controlled, child)
		}
	}
	decided := k.Decide(foo, named, controlled, seen)
	result := plan.Result[T]{Action: decided.Action, Pending: decided.Pending, Named: named}
	if !plan.IsNil(named) && plan.IsControlledBy(named, foo) {
		result.Child, result.Drift, seen[k.Kind] = named, decided.Drift, named
	}
	var s rowSync
	if verb, say := verbs[decided.Action]; say && (!blocked || !verb.IsWrite()) {
		before := maps.Clone(seen)
		s.write = &Write{Verb: verb, Kind: k.Kind, Resource: k.Resource, Name: k.Name(foo), Drift: decided.Drift}
		s.write.driftOf = func(stored Object) string {
			child, _ := stored.(T)
			return k.DescribeDrift(k.kept(child), foo, before)
		}
		if !plan.IsNil(live) {
			s.write.Before = live
		}
		if after := k.after(decided, live, foo, seen); !plan.IsNil(after) {
			s.write.After = after
			s.write.patch = func() (types.PatchType, []byte, error) { return k.Patch(live, after) }
			child := k.stored(live, after)
			result.Child, result.Drift, seen[k.Kind] = child, "", child
		}
	}
	result.InService = decided.InService
	for _, child := range decided.Obsolete {
		s.obsolete = append(s.obsolete, Write{Verb: Delete, Kind: k.Kind, Resource: k.Resource, Name: child.GetName(), Before: child})
	}
	s.outcome = k.Outcome(foo, result)
	s.blocks = k.Blocks && !k.IsAsAsked(foo, result)
	return s
}

// kept returns what the controller's cache keeps of an object.
func (k kind[T]) kept(live T) (kept T) {
	if plan.IsNil(live) {
		return kept
	}
	object, err := k.Transform(live)
	if err != nil {
		panic(err) // it returns none for an object of its kind
	}
	return object.(T) //nolint:forcetypeassert // an object keeps its type
}

// after returns the object that the sync sends, or nil.
func (k kind[T]) after(decided plan.Decision[T], live T, foo *samplev1alpha1.Foo, seen plan.Seen) (sent T) {
	switch decided.Action {
	case plan.ActionCreate:
		sent = k.DesiredAfter(foo, decided.Earlier(), seen)
	case plan.ActionUpdate, plan.ActionAdopt:
		sent = k.DesiredUpdate(live, foo, seen)
	case plan.ActionNone, plan.ActionLeave, plan.ActionWait, plan.ActionSuspend:
	}
	return sent
}

// stored returns an object as the API server would answer a write: with the generation of
// its desired state. Without that, the status of the old state would count as that of the
// new one. For some kinds, the API server counts annotations as desired state.
func (k kind[T]) stored(before, after T) T {
	stored := copyOf(after)
	if plan.IsNil(before) {
		stored.SetGeneration(1)
		return stored
	}
	sameState := copyOf(before)
	sameState.SetLabels(after.GetLabels())
	sameState.SetOwnerReferences(after.GetOwnerReferences())
	if !equality.Semantic.DeepEqual(sameState, after) {
		stored.SetGeneration(before.GetGeneration() + 1)
	}
	return stored
}

func copyOf[T plan.Object](object T) T {
	return object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
}

// verbs are those of the actions about which there is something to say.
var verbs = map[plan.Action]Verb{
	plan.ActionCreate: Create, plan.ActionUpdate: Update, plan.ActionAdopt: Adopt, plan.ActionLeave: Leave, plan.ActionWait: Wait, plan.ActionSuspend: Suspend,
}

// World holds the objects of a cluster that syncs read, beside the Foos.
type World struct {
	byName       map[schema.GroupVersionResource]map[cache.ObjectName]Object
	byController map[schema.GroupVersionResource]map[types.UID][]Object
}

// NewWorld returns a World without objects.
func NewWorld() *World {
	return &World{
		byName:       map[schema.GroupVersionResource]map[cache.ObjectName]Object{},
		byController: map[schema.GroupVersionResource]map[types.UID][]Object{},
	}
}

// Add adds an object of a resource.
func (w *World) Add(resource schema.GroupVersionResource, object Object) {
	if w.byName[resource] == nil {
		w.byName[resource], w.byController[resource] = map[cache.ObjectName]Object{}, map[types.UID][]Object{}
	}
	w.byName[resource][cache.MetaObjectToName(object)] = object
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		w.byController[resource][controller.UID] = append(w.byController[resource][controller.UID], object)
	}
}

// named returns the object of a name, or nil.
func (w *World) named(resource schema.GroupVersionResource, namespace, name string) Object {
	return w.byName[resource][cache.ObjectName{Namespace: namespace, Name: name}]
}

// ControlledBy returns the objects of a resource that a Foo controls.
func (w *World) ControlledBy(resource schema.GroupVersionResource, foo *samplev1alpha1.Foo) []Object {
	var controlled []Object
	for _, object := range w.byController[resource][foo.UID] {
		if plan.IsControlledBy(object, foo) {
			controlled = append(controlled, object)
		}
	}
	return controlled
}
