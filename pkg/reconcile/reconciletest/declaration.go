// SPDX-License-Identifier: Apache-2.0

// What is wrong with a declaration that no run would name: it would only show drift that never ends, or a child
// that does not follow.

package reconciletest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
		if reference.NamedBy != "" && len(reference.NamesFor(d.Example)) > 0 && !hasField(d.Example, reference.NamedBy) {
			return fmt.Errorf("the reference to a %s: the example has no field %s, which NamedBy says", reference.Kind, reference.NamedBy)
		}
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
		if err := d.checkFollows(d.references[i], reference.Kind); err != nil {
			return err
		}
	}
	return nil
}

// checkFollows returns an error unless a child of the example changes with what it names, in its Pod template if it has
// one: Pods roll only with that.
func (d *derived[F]) checkFollows(named *rows.Reference, kind string) error {
	edited := func(kind *rows.Kind, name string) rows.Object {
		for _, reference := range d.references {
			if reference.Kind == kind {
				return reference.New(name, map[bool]int32{true: 1}[reference == named])
			}
		}
		return kind.StoredNamed(d.Example, name)
	}
	problem := fmt.Errorf("no child changes with the %s that a %s names: call view.AnnotateDigest(..., %q) in SetOwned of a row, or declare no Digest",
		kind, d.Kind.Name, kind)
	for i, row := range d.Kind.Children {
		for _, name := range row.NamesFor(d.Example) {
			before := row.DesiredNamed(d.Example, name, nil, d.view(i, d.Example, nil))
			after := row.DesiredNamed(d.Example, name, nil, d.view(i, d.Example, edited))
			switch {
			case equality.Semantic.DeepEqual(before, after):
			case podTemplate(before) == nil, !equality.Semantic.DeepEqual(podTemplate(before), podTemplate(after)):
				return nil
			default:
				problem = fmt.Errorf("the Pod template of the %s does not change with the %s that a %s names, so its Pods keep the old one: call view.AnnotateDigest(&child.Spec.Template.ObjectMeta, ..., %q) in SetOwned",
					row.Kind, kind, d.Kind.Name, kind)
			}
		}
	}
	return problem
}

// podTemplate returns the template of the Pods of a child, or nil.
func podTemplate(child plan.Object) any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return nil
	}
	template, _, _ := unstructured.NestedFieldNoCopy(fields, "spec", "template")
	return template
}

// hasField reports whether an object has a field, such as spec.secret. What is in a list is not looked at.
func hasField(object plan.Object, path string) bool {
	var value any
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return false
	}
	for name := range strings.SplitSeq(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		fields, ok := value.(map[string]any)
		if !ok {
			_, isList := value.([]any)
			return isList
		}
		if value, ok = fields[name]; !ok {
			return false
		}
	}
	return true
}
