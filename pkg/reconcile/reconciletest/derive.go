// SPDX-License-Identifier: Apache-2.0

// The rows of a kind that the tests do not know, derived from what its author declares.

package reconciletest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// Cluster does what the cluster does to the objects of a kind. Any function may be nil.
type Cluster struct {
	// Default sets what the API server sets.
	Default func(object rows.Object)
	// Generation reports whether a write raises the generation. By default a change of the spec
	// does, for kinds whose status has an observedGeneration.
	Generation func(before, after rows.Object) bool
	// Advance makes the next change of the status that the cluster's own controllers make, and
	// reports whether there was one.
	Advance func(object rows.Object) bool
}

// Deployments stands for the API server and the Deployment controller, which rolls out one Pod after the
// other.
func Deployments() Cluster {
	as := func(object rows.Object) *appsv1.Deployment { return object.(*appsv1.Deployment) }
	return Cluster{
		Default:    func(object rows.Object) { rows.DefaultDeployment(as(object)) },
		Generation: func(before, after rows.Object) bool { return rows.DeploymentGeneration(as(before), as(after)) },
		Advance:    func(object rows.Object) bool { return rows.AdvanceDeployment(as(object)) },
	}
}

// derived makes the rows of a kind.
type derived[F plan.Owner] struct {
	Controller[F]

	kinds      []*rows.Kind
	references []*rows.Reference
	// rename is the edit after which an owner asks for a child of another name, or nil.
	rename func(F)
}

// derive returns the rows of a kind. They know nothing but its declaration: what is right at the end of a
// run, the run without faults says, too.
func derive[F plan.Owner](c Controller[F]) (*rows.OwnerRow, error) {
	if c.Kind == nil || reflect.ValueOf(&c.Example).Elem().IsZero() || c.Start == nil || len(c.Edits) == 0 {
		return nil, errors.New("a Controller needs a Kind, an Example, a function Start and at least one of Edits")
	}
	d := &derived[F]{Controller: c}
	d.Example = d.owner("a")
	kind := rows.Row[F, F]{
		Resource: c.Kind.Resource, Kind: c.Kind.Name, Default: c.Default,
		Generation: rows.SpecChanged[F],
		ClearOwned: func(owner, _ F) {
			if c.ClearOwned != nil {
				c.ClearOwned(owner)
			}
		},
	}
	for i, child := range c.Kind.Children {
		if err := child.Check(); err != nil {
			return nil, err
		}
		if len(child.NamesFor(d.Example)) == 0 {
			return nil, fmt.Errorf("the example of a %s wants no %s: give one that wants a child of each kind", c.Kind.Name, child.Kind)
		}
		d.kinds = append(d.kinds, d.row(i, child))
	}
	for i, edit := range c.Edits {
		edited := d.owner("a")
		edit(edited)
		if equality.Semantic.DeepEqual(edited.GetSpec(), d.Example.GetSpec()) {
			return nil, fmt.Errorf("edit %d does not change the spec of the example", i+1)
		}
		isRename := func(child *plan.ChildKind) bool { return isRenamed(child, d.Example, edited) }
		if slices.ContainsFunc(c.Kind.Children, isRename) && d.rename == nil {
			d.rename = edit
		}
	}
	if err := d.addReferences(); err != nil {
		return nil, err
	}
	o := rows.OwnerRow{
		Kind: kind.Untyped(), Kinds: d.kinds, References: d.references, New: d.new, Rename: d.named, Resize: d.resize,
		Outside: c.Outside, NoObjects: c.NoObjects, NoEvents: c.NoEvents, Probes: true,
	}
	if c.AtRest != nil {
		o.AtRest = func(objects []rows.Object) []string { return c.AtRest(rules.World{Owner: &o, Objects: objects}) }
	}
	owner := rows.Owner(o)
	if err := d.checkNamed(); err != nil {
		return nil, err
	}
	return owner, d.checkRows()
}

// isRenamed reports whether an edit changes the name of a child, or of all children of a set.
func isRenamed(child *plan.ChildKind, before, after plan.Owner) bool {
	if !child.IsSet() {
		return child.Name(after) != child.Name(before)
	}
	names := child.NamesFor(after)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return child.Wants(before, child.KeyFor(before, name)) })
}

// owner returns the example under a name, as a user creates it.
func (d *derived[F]) owner(name string) F {
	owner := plan.CopyOf(d.Example)
	meta := metav1.ObjectMeta{Name: name, Namespace: rows.Namespace, Labels: owner.GetLabels(), Annotations: owner.GetAnnotations(), Finalizers: owner.GetFinalizers()}
	reflect.ValueOf(owner).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(meta))
	plan.ResetStatus(owner)
	return owner
}

// new returns an owner of a name and size. The names of children in workloads mean nothing here but that
// each other than "web" is another one.
func (d *derived[F]) new(name, child string, size int32) rows.Object {
	owner := d.owner(name)
	d.named(owner, child)
	if size > 1 {
		d.resize(owner, size)
	}
	return owner
}

func (d *derived[F]) named(owner rows.Object, child string) {
	switch {
	case child == "web":
		d.resize(owner, 1)
	case d.rename != nil:
		d.rename(owner.(F))
	}
}

// resize makes an edit, or with size 1 or less makes the spec that of the example again.
func (d *derived[F]) resize(owner rows.Object, size int32) {
	if size > 1 {
		d.Edits[int(size-2)%len(d.Edits)](owner.(F))
		return
	}
	spec := reflect.ValueOf(plan.CopyOf(d.Example).GetSpec()).Elem()
	reflect.ValueOf(owner.(F).GetSpec()).Elem().Set(spec)
}

// variants returns an owner as it is, as the example is, and after each edit of that. A write may be by any
// of them.
func (d *derived[F]) variants(owner rows.Object) []plan.Owner {
	example := d.owner("a")
	all := []plan.Owner{example}
	if owner != nil {
		example.SetName(owner.GetName())
		all = append(all, owner.(F))
	}
	for _, edit := range d.Edits {
		edited := plan.CopyOf(example)
		edit(edited)
		all = append(all, edited)
	}
	return all
}

// row returns the row of a kind of children.
func (d *derived[F]) row(i int, child *plan.ChildKind) *rows.Kind {
	isNew := func(owner rows.Object) F {
		if owner == nil {
			return d.owner("a")
		}
		return owner.(F)
	}
	cluster, isGiven := d.Cluster[child.Kind]
	if _, ok := child.Empty().(*appsv1.Deployment); ok && !isGiven {
		cluster = Deployments()
	}
	row := rows.Row[rows.Object, rows.Object]{
		Resource: child.Resource, Kind: child.Kind, Blocks: child.Blocks, NamedBy: child.NamedBy, OneAtATime: child.OneAtATime,
		New: func(owner rows.Object) rows.Object {
			return child.Desired(owner.(F), nil, d.view(i, owner, nil))
		},
		Default: cluster.Default, Generation: cluster.Generation, Advance: cluster.Advance,
		// What no owner owns is the same after each has set what it owns.
		ClearOwned: func(object, owner rows.Object) {
			for _, variant := range d.variants(owner) {
				child.SetOwned(object, variant, d.view(i, variant, nil))
			}
		},
		Drift:  func(object, owner rows.Object) { drift(child, object, isNew(owner), d.view(i, isNew(owner), nil)) },
		Serves: func(object rows.Object) bool { return child.Serves(object) },
		Unready: func(object rows.Object) string {
			if ready := child.Judge(object); ready.Status != metav1.ConditionTrue {
				return fmt.Sprintf("is not ready (%s): %s", ready.Reason, ready.Message)
			}
			return ""
		},
	}
	if _, counts := statusField(child.Empty(), "ObservedGeneration"); counts && row.Generation == nil {
		row.Generation = rows.SpecChanged[rows.Object]
	}
	if child.IsSet() {
		row.Names = func(owner rows.Object) []string { return child.NamesFor(owner.(F)) }
	} else {
		row.Name = func(owner rows.Object) string { return child.Name(owner.(F)) }
	}
	differs := func(object, owner rows.Object, find rows.Find) string {
		if drift := child.DescribeDrift(object, owner.(F), d.view(i, owner, find)); drift != "" {
			return "differs: " + drift
		}
		return ""
	}
	row.Differs = func(object, owner rows.Object) string { return differs(object, owner, nil) }
	kind := row.Untyped()
	kind.DiffersIn = differs
	if child.IsSet() {
		kind.NewNamed = func(owner rows.Object, name string) rows.Object {
			step := plan.Step{ChildKind: child, Owner: owner.(F), View: d.view(i, owner, nil), Key: cache.ObjectName{Namespace: rows.Namespace, Name: name}}
			return step.NewChild(nil)
		}
	} else {
		kind.Wanted = func(owner rows.Object) bool { return len(child.NamesFor(owner.(F))) > 0 } // elsewhere, not in its deletion
	}
	if child.IsElsewhere() {
		kind.Elsewhere = child.Namespace(d.Example)
	}
	kind.Is = func(object runtime.Object) bool { return reflect.TypeOf(object) == reflect.TypeOf(child.Empty()) }
	return kind
}

// view returns what an owner's children of a kind may depend on: those of the kinds before it and the objects
// that the owner names, as find returns them, or if that is nil, as the API server would have them.
func (d *derived[F]) view(before int, owner rows.Object, find rows.Find) *plan.View {
	view := d.digests(owner, find)
	for _, earlier := range d.kinds[:before] {
		names := earlier.Names(owner)
		if !earlier.IsSet() && find != nil {
			names = []string{earlier.Name(owner)} // also one that it does not want any more
		}
		for _, name := range names {
			var child rows.Object
			if find != nil {
				child = find(earlier, name)
			} else {
				child = earlier.StoredNamed(owner, name)
			}
			if child != nil {
				view.Observe(earlier.Kind, child)
			}
		}
	}
	return view
}

func statusField(object rows.Object, name string) (field reflect.Value, ok bool) {
	if status := reflect.ValueOf(object).Elem().FieldByName("Status"); status.IsValid() {
		field = status.FieldByName(name)
	}
	return field, field.IsValid()
}
