// SPDX-License-Identifier: Apache-2.0

// The objects that owners name and do not own.

package reconciletest

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Named is about the objects of a kind that owners name and do not own.
type Named struct {
	// Object is one that is fit. It gets each name that an owner names. Texts in it of six bytes or more must be
	// in no status and in no event.
	Object plan.Object
	// Edits are changes after which it is fit, and of which children depend on each.
	Edits []func(object plan.Object)
	// Spoil makes it unfit. nil means that each is fit.
	Spoil func(object plan.Object)
}

// addReferences makes the rows of the objects that owners name.
func (d *derived[F]) addReferences() error {
	for _, reference := range d.Kind.References {
		if err := reference.Check(); err != nil {
			return err
		}
		named, isGiven := d.Named[reference.Kind]
		switch {
		case !isGiven || named.Object == nil || len(named.Edits) == 0:
			return fmt.Errorf("a %s names a %s: give its Object and at least one of Edits in Named", d.Kind.Name, reference.Kind)
		case len(reference.NamesFor(d.Example)) == 0:
			return fmt.Errorf("the example of a %s names no %s: give one that names an object of each kind", d.Kind.Name, reference.Kind)
		case reference.Learn(named.Object).Readiness.Status != metav1.ConditionTrue:
			return fmt.Errorf("the object of the kind %s is not fit: %s", reference.Kind, reference.Learn(named.Object).Readiness.Message)
		}
		d.references = append(d.references, d.reference(reference, named))
	}
	return nil
}

// reference returns the row of a kind of objects that owners name.
func (d *derived[F]) reference(reference *plan.ChildKind, named Named) *rows.Reference {
	row := &rows.Reference{Blocks: reference.Blocks, Poll: reference.Poll()}
	row.Names = func(owner rows.Object) []string { return reference.NamesFor(owner.(F)) }
	row.New = func(name string, change int32) rows.Object {
		object := plan.CopyOf(named.Object)
		object.SetName(name)
		object.SetNamespace(rows.Namespace)
		if change > 0 {
			named.Edits[int(change-1)%len(named.Edits)](object)
		}
		return object
	}
	if named.Spoil != nil {
		row.Spoil = func(object rows.Object) { named.Spoil(object) }
	}
	row.Unfit = func(object rows.Object) (reason string, isStalled bool) {
		if is := reference.Learn(object).Readiness; is.Status != metav1.ConditionTrue {
			return is.Reason, is.Stalled
		}
		return "", false
	}
	all := sets.New[string]()
	for _, name := range []string{"a", "b"} {
		example := d.owner(name)
		for _, owner := range d.variants(example) {
			all.Insert(reference.NamesFor(owner)...)
		}
	}
	row.All = sets.List(all)
	i := slices.IndexFunc(d.kinds, func(kind *rows.Kind) bool { return kind.Resource == reference.Resource })
	if i >= 0 {
		row.Kind = d.kinds[i]
		return row
	}
	of := rows.Row[rows.Object, rows.Object]{
		Resource: reference.Resource, Kind: reference.Kind,
		Name:       func(rows.Object) string { return "" },
		New:        func(rows.Object) rows.Object { return row.New("", 0) },
		ClearOwned: func(_, _ rows.Object) {},
	}
	row.Kind = of.Untyped()
	row.Kind.Is = func(object runtime.Object) bool { return reflect.TypeOf(object) == reflect.TypeOf(reference.Empty()) }
	return row
}

// digests returns a view that has nothing but the digests of what an owner names.
func (d *derived[F]) digests(owner rows.Object, find rows.Find) *plan.View {
	view := d.Kind.NewView()
	if len(d.Kind.References) == 0 {
		return view
	}
	named := func(of *plan.ChildKind) plan.Found {
		row := d.references[slices.Index(d.Kind.References, of)]
		return plan.Found{Named: func(key cache.ObjectName) plan.Object {
			if find == nil {
				return row.New(key.Name, 0)
			}
			if object := find(row.Kind, key.Name); object != nil {
				return object
			}
			return nil
		}}
	}
	kind := *d.Kind
	kind.Children = nil
	for step := range kind.NewWorld(owner.(F), named).Steps() {
		view = step.View
	}
	return view
}

// isPoll reports whether a point is the read of an object that an owner names, which is repeated at rest.
func (c *cluster) isPoll(point injectionPoint) bool {
	isReference := slices.ContainsFunc(c.owner.References, func(reference *rows.Reference) bool { return reference.Kind == point.id.kind })
	return isReference && point.verb == "get" && c.isPolled(point.id.kind)
}

// isPolled reports whether the controller reads objects of a kind without a list of them.
func (c *cluster) isPolled(kind *rows.Kind) bool {
	return c.reached[injectionPoint{verb: "list", id: objectID{kind: kind}}] == 0
}
