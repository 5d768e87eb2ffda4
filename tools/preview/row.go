// SPDX-License-Identifier: Apache-2.0

// A row of the table of children, without the type of its objects.

package preview

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
