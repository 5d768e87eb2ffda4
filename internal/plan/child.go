// SPDX-License-Identifier: Apache-2.0

// A kind of object that Foos own, as a row of a table: what is particular to it. All else
// is the same for every kind, and written once.

package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Row declares a kind of object that owners of the type F own. Its functions are pure.
type Row[F Owner, T Object] struct {
	// Kind is the name of the kind in messages, such as "ConfigMap".
	Kind string
	// Resource is that of the kind in the API.
	Resource schema.GroupVersionResource
	// NamedBy is the field of the Foo that a user changes to get another name. It is empty
	// if there is none.
	NamedBy string
	// Name returns the name of the child that a Foo asks for.
	Name func(foo F) string
	// Wanted reports whether a Foo asks for a child. nil means that each does.
	Wanted func(foo F) bool
	// Empty returns a new object of the kind.
	Empty func() T
	// New returns a child with what nobody can change later, such as a selector. Name,
	// namespace, owner and owned fields are set for it.
	New func(foo F) T
	// SetOwned sets the fields that a Foo owns, and no others. It is called with a copy:
	// the fields that it changes have drifted. seen has the children of the earlier rows.
	SetOwned func(child T, foo F, seen Seen)
	// Keep copies into kept what SetOwned, Judge and Report read. The caches drop the rest.
	Keep func(kept, found T)
	// Judge says whether a child that is as the Foo asks is ready. nil means that it is.
	Judge func(child T) Verdict
	// Serves reports whether a child of an earlier name does work that would be missing
	// before its successor is ready. nil means that none does.
	Serves func(child T) bool
	// Inherit returns the function that copies into a new child what an earlier one has and
	// the Foo leaves to others, such as an autoscaler's number. Both may be nil.
	Inherit func(foo F) func(child, earlier T)
	// Restarts reports whether an update interrupts what the child runs. nil means that none
	// does.
	Restarts func(before, after T) bool
	// Report adds to the status of a Foo, which is a copy, what the child reports. It may be
	// nil.
	Report func(foo F, child T)
	// Condition is the type of a condition that the Foo has while it has the child, such as
	// "Exposed", with what Judge says. "" means none.
	Condition string
	// Blocks is true if the later rows have to wait until this child is as the Foo asks.
	Blocks bool
}

// ChildKind is a Row without its types: the loop, which is the same for every kind, knows
// none. None of its functions is nil.
type ChildKind struct {
	Row[Owner, Object]

	// OwnerKind is the kind whose objects own these.
	OwnerKind *OwnerKind

	lacks []string
}

// Of returns the row without its types, as one of a kind's table.
func (r Row[F, T]) Of(owner *OwnerKind) *ChildKind {
	c := &ChildKind{OwnerKind: owner, lacks: r.lacks()}
	c.Kind, c.Resource, c.NamedBy, c.Condition, c.Blocks = r.Kind, r.Resource, r.NamedBy, r.Condition, r.Blocks
	c.Name = func(owner Owner) string { return r.Name(owner.(F)) }
	c.Wanted = func(owner Owner) bool { return r.Wanted == nil || r.Wanted(owner.(F)) }
	c.Empty = func() Object { return r.Empty() }
	c.New = func(owner Owner) Object { return r.New(owner.(F)) }
	c.SetOwned = func(child Object, owner Owner, seen Seen) { r.SetOwned(child.(T), owner.(F), seen) }
	c.Keep = func(kept, found Object) { r.Keep(kept.(T), found.(T)) }
	c.Judge = func(child Object) Verdict {
		if r.Judge == nil {
			return Verdict{Status: metav1.ConditionTrue}
		}
		return r.Judge(child.(T))
	}
	c.Serves = func(child Object) bool { return r.Serves != nil && r.Serves(child.(T)) }
	c.Inherit = func(owner Owner) func(child, earlier Object) {
		if r.Inherit == nil || r.Inherit(owner.(F)) == nil {
			return nil
		}
		return func(child, earlier Object) { r.Inherit(owner.(F))(child.(T), earlier.(T)) }
	}
	c.Restarts = func(before, after Object) bool { return r.Restarts != nil && r.Restarts(before.(T), after.(T)) }
	c.Report = func(owner Owner, child Object) {
		if r.Report != nil {
			r.Report(owner.(F), child.(T))
		}
	}
	return c
}

// lacks returns what a row has to declare and does not. Without Keep, the cache would keep
// nothing that SetOwned sets, or all of each object.
func (r Row[F, T]) lacks() (missing []string) {
	for _, name := range []string{"Kind", "Resource", "Name", "Empty", "New", "SetOwned", "Keep"} {
		if reflect.ValueOf(r).FieldByName(name).IsZero() {
			missing = append(missing, name)
		}
	}
	return missing
}

// Seen holds a Foo's children of the earlier rows by their kind, as they were last read
// or written. A child that the Foo does not have is missing.
type Seen map[string]metav1.Object

// Check returns an error that names what a row lacks.
func (c *ChildKind) Check() error {
	if len(c.lacks) == 0 {
		return nil
	}
	return fmt.Errorf("the row of the kind %q lacks %s", c.Kind, strings.Join(c.lacks, ", "))
}

// LogKey returns the key of a child in structured logs, such as "configMap".
func (c *ChildKind) LogKey() string { return strings.ToLower(c.Kind[:1]) + c.Kind[1:] }

// Desired returns a child to create for a Foo.
func (c *ChildKind) Desired(owner Owner, seen Seen) Object {
	return c.DesiredAfter(owner, nil, seen)
}

// DesiredAfter returns a child to create for a Foo in place of an earlier one, if there is
// one.
func (c *ChildKind) DesiredAfter(owner Owner, earlier Object, seen Seen) Object {
	child := c.New(owner)
	if c.Inherits(owner) && earlier != nil {
		c.Inherit(owner)(child, earlier)
	}
	child.SetName(c.Name(owner))
	child.SetNamespace(owner.GetNamespace())
	child.SetOwnerReferences([]metav1.OwnerReference{c.OwnerKind.newControllerRef(owner)})
	c.SetOwned(child, owner, seen)
	return child
}

// DesiredUpdate returns the object that an update should store in place of the live one,
// or nil if the live one needs no update, so that the cache was stale.
func (c *ChildKind) DesiredUpdate(live Object, owner Owner, seen Seen) Object {
	switch c.Decide(owner, live, nil, seen).Action {
	case ActionUpdate:
		return c.withOwnedFields(live, owner, seen)
	case ActionAdopt:
		return c.adopted(live, owner, seen)
	default:
		return nil
	}
}

// Inherits reports whether a new child of a Foo depends on what an earlier one has.
func (c *ChildKind) Inherits(owner Owner) bool {
	return c.Inherit(owner) != nil
}

// IsRestarting reports whether an update to what a Foo asks for interrupts what its child runs.
func (c *ChildKind) IsRestarting(child Object, owner Owner, seen Seen) bool {
	return c.Restarts(child, c.withOwnedFields(child, owner, seen))
}

// withOwnedFields returns a copy of a child whose owned fields are as the Foo asks.
// Everything else is as found, the resourceVersion included, so that the API server
// refuses the copy as an update if anybody has written in between.
func (c *ChildKind) withOwnedFields(found Object, owner Owner, seen Seen) Object {
	wanted := CopyOf(found)
	c.SetOwned(wanted, owner, seen)
	return wanted
}

// DescribeDrift returns in which owned fields a child differs from what the Foo asks for,
// or "" if in none.
func (c *ChildKind) DescribeDrift(found Object, owner Owner, seen Seen) string {
	if !c.OwnerKind.IsControlledBy(found, owner) {
		return fmt.Sprintf("this %s is not its controller", c.OwnerKind.Kind)
	}
	wanted := c.withOwnedFields(found, owner, seen)
	// Most are equal, and for those the library's comparison is eight times as fast. It
	// takes an empty list for another one than none.
	if reflect.DeepEqual(found, wanted) || equality.Semantic.DeepEqual(found, wanted) {
		return ""
	}
	return cmp.Or(describeDifferences(found, wanted), "an owned field") // "" would mean that nothing is to be done
}
