// SPDX-License-Identifier: Apache-2.0

// What is wrong with a declaration that no run would name: it would only show drift that never ends, or a child
// that does not follow.

package reconciletest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// keepsOwned returns an error if the cache lacks what SetOwned has set in a child of a name.
func keepsOwned(row *plan.ChildKind, of plan.Owner, name string, view *plan.View) error {
	if row.IsItself() {
		return nil // the cache of the owner keeps it
	}
	owner := plan.CopyOf(of)
	owner.SetUID("any") // marks name no owner without one
	cached, err := row.Transform(row.DesiredNamed(owner, name, nil, view))
	if err != nil {
		return err
	}
	if drift := row.DescribeDrift(cached.(plan.Object), owner, view); drift != "" { //nolint:forcetypeassert // an object keeps its type
		return fmt.Errorf("the row %s: Keep does not copy all that SetOwned sets, so that each sync would repair it: %s", row.Kind, drift)
	}
	return nil
}

// checkRows returns an error if a row can't do what it declares, for the example or after an edit of it.
func (d *derived[F]) checkRows() error {
	for _, owner := range d.variants(nil) {
		for i, row := range d.Kind.Children {
			view := d.view(i, owner, nil)
			for _, name := range row.NamesFor(owner) {
				if err := keepsOwned(row, owner, name, view); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkNamed returns an error if what an owner names does not have the effect that is declared.
func (d *derived[F]) checkNamed() error {
	for _, kind := range slices.Sorted(maps.Keys(d.Named)) {
		if !slices.ContainsFunc(d.Kind.References, func(of *plan.ChildKind) bool { return of.Kind == kind }) {
			return fmt.Errorf("there is a %s in Named, but the table of %s has no reference to it: add table.Uses", kind, d.Kind.Name)
		}
	}
	for i, reference := range d.Kind.References {
		if !reference.HasDigest() {
			continue
		}
		object := d.Named[reference.Kind].Object
		for j, edit := range d.Named[reference.Kind].Edits {
			edited := plan.CopyOf(object)
			edit(edited)
			if reference.Learn(edited).Digest == reference.Learn(object).Digest {
				return fmt.Errorf("edit %d of the %s in Named changes nothing that Digest returns", j+1, reference.Kind)
			}
		}
		if !d.isFollowed(d.references[i]) {
			return fmt.Errorf("no child changes with the %s that a %s names: call view.AnnotateDigest(..., %q) in SetOwned of a row, or declare no Digest",
				reference.Kind, d.Kind.Name, reference.Kind)
		}
	}
	return nil
}

// isFollowed reports whether a child of the example changes with what it names.
func (d *derived[F]) isFollowed(named *rows.Reference) bool {
	edited := func(kind *rows.Kind, name string) rows.Object {
		for _, reference := range d.references {
			if reference.Kind == kind {
				return reference.New(name, map[bool]int32{true: 1}[reference == named])
			}
		}
		return kind.StoredNamed(d.Example, name)
	}
	for i, row := range d.Kind.Children {
		for _, name := range row.NamesFor(d.Example) {
			before, after := d.view(i, d.Example, nil), d.view(i, d.Example, edited)
			if !equality.Semantic.DeepEqual(row.DesiredNamed(d.Example, name, nil, before), row.DesiredNamed(d.Example, name, nil, after)) {
				return true
			}
		}
	}
	return false
}
