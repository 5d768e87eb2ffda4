// SPDX-License-Identifier: Apache-2.0

// What the caches keep, and their indexes.

package table

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// The names of indexes begin with these, and go on with the kind, because kinds may share a cache.
//
// Children are indexed by the bucket of the UID of the owner that controls them. It finds the
// children that an owner had under an earlier name. Owners are indexed by the names of the
// children that they want, as the bucket of "namespace/name"; each row has an index.
const (
	indexByController = "controllerUID/"
	indexByName       = "childName/"
	indexByReference  = "referenceName/"
)

// nameOf returns what tells a kind from all others, such as "Foo.samplecontroller.k8s.io".
func nameOf(kind *plan.Kind) string {
	return schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Name}.String()
}

// Prepare bounds what the caches of a program's kinds keep of each object, and adds indexes to them.
// Kinds may share a cache, which then keeps what any of them reads. So call it once, with all kinds.
// The informers must not run yet.
func Prepare(kinds ...*Kind) error {
	caches := cachesOf(kinds)
	if err := errors.Join(check(kinds), checkFresh(caches)); err != nil {
		return err
	}
	var errs []error
	for _, c := range caches {
		errs = append(errs, c.informer.SetTransform(plan.Transforms(c.owners, c.rows)))
	}
	for _, kind := range kinds {
		errs = append(errs, kind.addIndexes())
	}
	return errors.Join(errs...)
}

// readers are the kinds and the rows that read a cache.
type readers struct {
	informer cache.SharedIndexInformer
	owners   []*plan.Kind
	rows     []*plan.ChildKind
}

// cachesOf returns the readers of each cache. A factory may return a different value for the same
// informer each time, so the Indexer identifies a cache.
func cachesOf(kinds []*Kind) (caches []*readers) {
	known := map[cache.Indexer]*readers{}
	of := func(informer cache.SharedIndexInformer) *readers {
		c := known[informer.GetIndexer()]
		if c == nil {
			c = &readers{informer: informer}
			known[informer.GetIndexer()], caches = c, append(caches, c)
		}
		return c
	}
	for _, kind := range kinds {
		owners := of(kind.Owners.Informer)
		owners.owners = append(owners.owners, kind.Kind)
		for _, row := range kind.Rows {
			if row.Informer == nil {
				continue // of the owner itself
			}
			children := of(row.Informer)
			children.rows = append(children.rows, row.ChildKind)
		}
		for _, row := range kind.References {
			if row.Informer != nil {
				named := of(row.Informer)
				named.rows = append(named.rows, row.ChildKind)
			}
		}
	}
	return caches
}

// check returns an error that names what is wrong with the declarations of kinds.
func check(kinds []*Kind) error {
	var errs []error
	names := sets.New[string]()
	for _, kind := range kinds {
		if name := nameOf(kind.Kind); names.Has(name) {
			errs = append(errs, fmt.Errorf("two kinds are named %s", name)) // each would take the other's children for its own
		} else {
			names.Insert(name)
		}
		errs = append(errs, kind.check())
	}
	return errors.Join(errs...)
}

func (k *Kind) check() error {
	var errs []error
	if k.IsOthers() && k.Group == "" {
		errs = append(errs, fmt.Errorf("the kind %s isn't the program's own and lacks Group, that of the annotations", k.Name))
	}
	if k.IsOthers() && k.Finalizer != "" {
		errs = append(errs, fmt.Errorf("the kind %s isn't the program's own and has a Finalizer: its objects would hang in their deletion without the program", k.Name))
	}
	resources := sets.New[schema.GroupResource]()
	for _, row := range k.Rows {
		if resource := row.Resource.GroupResource(); resources.Has(resource) {
			// Each row would delete the other's children, which it does not want.
			errs = append(errs, fmt.Errorf("the table of %s has two rows for %s", k.Name, resource))
		} else {
			resources.Insert(resource)
		}
		errs = append(errs, row.Check())
	}
	named := sets.New[string]()
	for _, row := range k.References {
		if named.Has(row.Kind) {
			errs = append(errs, fmt.Errorf("the table of %s has two references to the kind %s: return the names of both in one", k.Name, row.Kind))
		}
		named.Insert(row.Kind)
		errs = append(errs, row.Check())
	}
	called := sets.New[string]()
	for _, row := range k.Calls {
		if called.Has(row.Kind) {
			errs = append(errs, fmt.Errorf("the table of %s has two calls of the kind %s", k.Name, row.Kind))
		}
		called.Insert(row.Kind)
		errs = append(errs, row.Check())
	}
	if !isFinalizer(k.Finalizer) {
		errs = append(errs, fmt.Errorf("the kind %s has the Finalizer %q, which is not a name such as \"example.com/certificate\"", k.Name, k.Finalizer))
	}
	return errors.Join(errs...)
}

// isFinalizer reports whether the API server stores a finalizer of a custom resource. "" means none.
func isFinalizer(name string) bool {
	return name == "" || strings.Contains(name, "/") && len(content.IsLabelKey(name)) == 0
}

// checkFresh returns an error if a cache that others read keeps owners that aren't the program's own, or
// if it has indexes of an earlier call of Prepare: what its readers need would be lost.
func checkFresh(caches []*readers) error {
	var errs []error
	for _, c := range caches {
		for _, kind := range c.owners {
			if kind.IsOthers() && len(c.owners)+len(c.rows) > 1 {
				errs = append(errs, fmt.Errorf("the kind %s, which isn't the program's own, shares its informer: give it one of its own", kind.Name))
			}
		}
		for name := range c.informer.GetIndexer().GetIndexers() {
			if strings.HasPrefix(name, indexByController) || strings.HasPrefix(name, indexByName) || strings.HasPrefix(name, indexByReference) {
				errs = append(errs, fmt.Errorf("an informer has the index %s already: prepare all kinds in one call", name))
			}
		}
	}
	return errors.Join(errs...)
}

func (k *Kind) addIndexes() error {
	var errs []error
	for _, row := range k.Rows {
		if row.Informer == nil {
			continue
		}
		errs = append(errs,
			row.Informer.AddTypedIndexers(cache.TypedIndexers[plan.Object]{k.byController: func(child plan.Object) ([]string, error) {
				if uid := k.UIDOfOwner(child); uid != "" {
					return []string{k.buckets.of(uid)}, nil
				}
				return nil, nil
			}}),
			k.addIndexByName(row))
	}
	for _, row := range k.References {
		if row.Informer != nil {
			errs = append(errs, k.addIndexByName(row))
		}
	}
	return errors.Join(errs...)
}

func (k *Kind) addIndexByName(row *Children) error {
	return k.Owners.Informer.AddTypedIndexers(cache.TypedIndexers[plan.Owner]{row.byName: func(owner plan.Owner) ([]string, error) {
		names := row.NamesFor(owner)
		buckets := make([]string, len(names))
		for i, name := range names {
			buckets[i] = k.buckets.of(row.KeyFor(owner, name).String())
		}
		return buckets, nil
	}})
}
