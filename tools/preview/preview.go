// SPDX-License-Identifier: Apache-2.0

// Package preview computes what the next sync of a Foo would write. It takes the same steps of
// pkg/reconcile/plan as the controller, on a list of objects, and sends no writes. It knows neither
// what the controller remembers between syncs nor how the API server would respond to a write.
package preview

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// Write is what a sync does about one child, or why it does nothing.
type Write struct {
	Action   plan.Action
	Kind     string
	Resource schema.GroupVersionResource
	Name     string
	// Before is the current object, or nil for a creation. After is the object to send, or nil
	// for a deletion and if there is no write.
	Before, After plan.Object
	// Drift describes the owned fields in which Before differs from the desired state.
	Drift string

	step *plan.Step
}

// IsSent reports whether the API server gets a request.
func (w *Write) IsSent() bool { return w.After != nil || w.Action == plan.ActionDelete }

// WasMadeForOwner reports whether the child is an object without a controller that was the Foo's,
// as after a restore from a backup. Of the labels of a new child, it has those that contain the
// Foo's name. The others may differ if the controller has written it, as in an adopted one.
func (w *Write) WasMadeForOwner() bool {
	if w.Before == nil || metav1.GetControllerOfNoCopy(w.Before) != nil || plan.IsTerminating(w.Before) ||
		w.Before.GetAnnotations()[w.step.OwnerKind.AdoptBy()] != "" {
		return false
	}
	isWritten := slices.ContainsFunc(w.Before.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == names.Controller })
	isNamed, has := false, labelsOf(w.Before)
	for key, value := range labelsOf(w.step.NewChild(nil)) {
		isName := strings.Contains(value, w.step.Owner.GetName())
		if has[key] != value && (isName || !isWritten) {
			return false
		}
		isNamed = isNamed || isName
	}
	return isNamed || isWritten
}

// labelsOf returns the labels of an object and of the Pods that it runs, which are decisive.
func labelsOf(object plan.Object) map[string]string {
	all := map[string]string{}
	maps.Copy(all, object.GetLabels())
	if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object); err == nil {
		ofPods, _, _ := unstructured.NestedStringMap(fields, "spec", "template", "metadata", "labels") // none is no error
		maps.Copy(all, ofPods)
	}
	return all
}

// Sync is what a sync of a Foo would write.
type Sync struct {
	Kind  *plan.Kind
	Owner plan.Owner
	// Writes are the writes of children, in order. Of several deletions of a kind, the sync sends
	// the first, and each later sync one more.
	Writes []Write
	// After is the Foo with its new status. Conditions that do not change keep their times.
	After plan.Owner
}

// ChangesStatus reports whether the status differs from the Foo's.
func (s *Sync) ChangesStatus() bool {
	return !equality.Semantic.DeepEqual(s.Owner.GetStatus(), s.After.GetStatus())
}

// StatusMayWait reports whether only a rollout's progress changes in the status, which the
// controller does not write at once.
func (s *Sync) StatusMayWait() bool {
	return s.ChangesStatus() && memory.MayWait(s.Owner, s.After, true) > 0
}

// IsIdle reports whether the sync writes nothing.
func (s *Sync) IsIdle() bool {
	return !s.ChangesStatus() && !slices.ContainsFunc(s.Writes, func(w Write) bool { return w.IsSent() })
}

// Of returns what a sync of a Foo would write. now becomes the time of the condition's
// transition if there is one.
func Of(kind *plan.Kind, foo plan.Owner, objects World, now metav1.Time) *Sync {
	sync := &Sync{Kind: kind, Owner: kept(kind.Transform, foo)}
	world := kind.NewWorld(sync.Owner, func(row *plan.ChildKind) plan.Found {
		return plan.Found{
			Named:      func(key cache.ObjectName) plan.Object { return kept(row.Transform, objects.at(row.Resource, key)) },
			Controlled: objects.ControlledBy(row, foo),
			Owner: func(key cache.ObjectName) plan.Owner {
				owner, _ := objects.at(kind.Resource, key).(plan.Owner)
				return owner
			},
		}
	})
	for step := range world.Steps() {
		world.Record(step, sync.take(step, objects.at(step.Resource, step.Key)))
	}
	for _, step := range world.Blocked() {
		if mayNotWrite[step.Action] {
			sync.take(step, objects.at(step.Resource, step.Key))
		}
	}
	sync.After = world.Status(now)
	return sync
}

// mayNotWrite has the actions that explain why nothing is written.
var mayNotWrite = map[plan.Action]bool{plan.ActionLeave: true, plan.ActionWait: true, plan.ActionSuspend: true}

// take makes the write that a step needs, from the whole live object, as the controller does.
func (s *Sync) take(step *plan.Step, live plan.Object) plan.Outcome {
	write, outcome := Write{Action: step.Action, Kind: step.Kind, Resource: step.Resource, Name: step.Key.Name, Drift: step.Drift, Before: live, step: step}, step.AsFound()
	switch step.Action {
	case plan.ActionNone:
		return outcome
	case plan.ActionCreate:
		write.After = step.NewChild(step.Earlier())
	case plan.ActionUpdate, plan.ActionAdopt:
		write.After = step.DesiredUpdate(live, step.Owner, step.View)
	case plan.ActionDelete: // the next sync sends the next
		outcome.Paced = true
	case plan.ActionLeave, plan.ActionWait, plan.ActionSuspend:
	}
	s.Writes = append(s.Writes, write)
	if write.After != nil {
		outcome.Child, outcome.Drift = storedAs(live, write.After), ""
	}
	return outcome
}

// storedAs returns an object as the API server would return it after a write: with the generation
// of its desired state. Otherwise, the old status would count as the status of the new state. For
// some kinds, the API server counts annotations as desired state.
func storedAs(before, after plan.Object) plan.Object {
	stored := plan.CopyOf(after)
	if before == nil {
		stored.SetGeneration(1)
		return stored
	}
	sameState := plan.CopyOf(before)
	sameState.SetLabels(after.GetLabels())
	sameState.SetOwnerReferences(after.GetOwnerReferences())
	if !equality.Semantic.DeepEqual(sameState, after) {
		stored.SetGeneration(before.GetGeneration() + 1)
	}
	return stored
}

// kept returns the part of an object that the controller's cache keeps, or nil for nil.
func kept[T plan.Object](transform cache.TransformFunc, object T) (kept T) {
	if any(object) == nil {
		return kept
	}
	trimmed, err := transform(object)
	if err != nil {
		panic(err) // it returns no error for an object of its kind
	}
	return trimmed.(T) //nolint:forcetypeassert // an object keeps its type
}

// World holds the objects that syncs read from a cluster, by name and by owner.
type World map[key][]plan.Object

// key has either the name of an object, or the UID of the objects' controller or of the Events' object.
type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
	owner           types.UID
}

// Add adds an object of a resource.
func (w World) Add(resource schema.GroupVersionResource, object plan.Object) {
	named := key{resource: resource, namespace: object.GetNamespace(), name: object.GetName()}
	w[named] = []plan.Object{object}
	owned := key{resource: resource}
	if event, ok := object.(*corev1.Event); ok {
		owned.owner = event.InvolvedObject.UID
	} else if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		owned.owner = ref.UID
	}
	if owned.owner != "" {
		w[owned] = append(w[owned], object)
	}
}

// at returns the object of a resource with a name, or nil.
func (w World) at(resource schema.GroupVersionResource, name cache.ObjectName) plan.Object {
	for _, object := range w[key{resource: resource, namespace: name.Namespace, name: name.Name}] {
		return object
	}
	return nil
}

// ControlledBy returns the objects of a row that a Foo controls, sorted by name.
func (w World) ControlledBy(row *plan.ChildKind, foo plan.Owner) []plan.Object {
	return slices.DeleteFunc(w.Below(row.Resource, foo), func(object plan.Object) bool { return !row.OwnerKind.IsControlledBy(object, foo) })
}

// Below returns the objects of a resource that an object controls, or the Events about it, sorted by name. Those of an
// object in a namespace are in the same one.
func (w World) Below(resource schema.GroupVersionResource, owner plan.Object) []plan.Object {
	var below []plan.Object
	for _, object := range w[key{resource: resource, owner: owner.GetUID()}] {
		if owner.GetNamespace() == "" || object.GetNamespace() == owner.GetNamespace() {
			below = append(below, object)
		}
	}
	return slices.SortedFunc(slices.Values(below), func(a, b plan.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
}
