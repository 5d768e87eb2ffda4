// SPDX-License-Identifier: Apache-2.0

// A kind of object that Foos own, as a row of a table. A row holds everything specific to
// the kind. The rest is the same for every kind and written once.

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
	// Resource is the kind's resource in the API.
	Resource schema.GroupVersionResource
	// NamedBy is the field of the Foo that a user changes to choose another name. It is
	// empty if there is none.
	NamedBy string
	// ScaledBy is the field of the Foo that sets the number of Pods and may be omitted, such as
	// "spec.replicas", or "".
	ScaledBy string
	// Name returns the name of the child that a Foo wants.
	Name func(foo F) string
	// Wanted reports whether a Foo wants a child. nil means that every Foo does.
	Wanted func(foo F) bool
	// Empty returns a new object of the kind.
	Empty func() T
	// New returns a child with its immutable fields, such as a selector. The caller sets the
	// name, namespace, owner and owned fields.
	New func(foo F) T
	// SetOwned sets the fields that a Foo owns, and no others. It receives a copy: the fields
	// that it changes have drifted. seen has the children of the earlier rows.
	SetOwned func(child T, foo F, seen Seen)
	// Keep copies to kept the fields that SetOwned, Judge and Report read. The caches drop the
	// rest.
	Keep func(kept, found T)
	// Judge returns whether a child in its desired state is ready. nil means that it is.
	Judge func(child T) Verdict
	// Serves reports whether a child with an earlier name does work that must continue until
	// its successor is ready. nil means that none does.
	Serves func(child T) bool
	// Inherit returns the function that copies to a new child the values of the earlier one
	// that the Foo leaves to others, such as an autoscaler's number. Both may be nil.
	Inherit func(foo F) func(child, earlier T)
	// Restarts reports whether an update restarts the Pods that the child runs. nil means that
	// none does.
	Restarts func(before, after T) bool
	// Report adds what the child reports to the status of a Foo, which is a copy. It may be
	// nil.
	Report func(foo F, child T)
	// Condition is the type of a condition, such as "Exposed", that the Foo has while it has
	// the child. Judge determines its status. "" means none.
	Condition string
	// Blocks is true if the later rows have to wait until this child is in its desired state.
	Blocks bool
}

// ChildKind is a Row without its types, for the loop, which is the same for every kind. None
// of its functions is nil.
type ChildKind struct {
	Row[Owner, Object]

	// OwnerKind is the kind of the owners.
	OwnerKind *OwnerKind

	lacks []string
}

// Of returns the row without its types, as a row in the table of an owner's kind.
func (r Row[F, T]) Of(owner *OwnerKind) *ChildKind {
	c := &ChildKind{OwnerKind: owner, lacks: r.lacks()}
	c.Kind, c.Resource, c.NamedBy, c.ScaledBy, c.Condition, c.Blocks = r.Kind, r.Resource, r.NamedBy, r.ScaledBy, r.Condition, r.Blocks
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

// lacks returns the required fields that a row does not declare. Without Keep, the cache would
// keep none of the fields that SetOwned sets, or all of each object.
func (r Row[F, T]) lacks() (missing []string) {
	for _, name := range []string{"Kind", "Resource", "Name", "Empty", "New", "SetOwned", "Keep"} {
		if reflect.ValueOf(r).FieldByName(name).IsZero() {
			missing = append(missing, name)
		}
	}
	return missing
}

// Seen maps kinds to a Foo's children of the earlier rows, as they were last read or
// written. It has no entry for a child that the Foo does not have.
type Seen map[string]metav1.Object

// Check returns an error that names the missing fields of a row.
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

// DesiredAfter returns a child to create for a Foo, as the successor of an earlier one if
// that is not nil.
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

// DesiredUpdate returns the object that an update should store instead of the live one, or
// nil if the live one needs no update, which means that the cache was stale.
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

// Inherits reports whether a new child of a Foo inherits values from an earlier one.
func (c *ChildKind) Inherits(owner Owner) bool {
	return c.Inherit(owner) != nil
}

// IsRestarting reports whether an update to the desired state restarts the child's Pods.
func (c *ChildKind) IsRestarting(child Object, owner Owner, seen Seen) bool {
	return c.Restarts(child, c.withOwnedFields(child, owner, seen))
}

// withOwnedFields returns a copy of a child with its owned fields in the desired state.
// Everything else is as found, including the resourceVersion, so that the API server
// refuses the copy as an update if anyone has written in between.
func (c *ChildKind) withOwnedFields(found Object, owner Owner, seen Seen) Object {
	wanted := CopyOf(found)
	c.SetOwned(wanted, owner, seen)
	c.OwnerKind.renewControllerRef(wanted)
	return wanted
}

// DescribeDrift describes the owned fields in which a child differs from its desired state.
// It returns "" if there are none.
func (c *ChildKind) DescribeDrift(found Object, owner Owner, seen Seen) string {
	if !c.OwnerKind.IsControlledBy(found, owner) {
		return fmt.Sprintf("this %s is not its controller", c.OwnerKind.Kind)
	}
	wanted := c.withOwnedFields(found, owner, seen)
	// Most are equal. reflect.DeepEqual confirms that eight times as fast, but treats nil and
	// empty lists as different.
	if reflect.DeepEqual(found, wanted) || equality.Semantic.DeepEqual(found, wanted) {
		return ""
	}
	return cmp.Or(describeDifferences(found, wanted), "an owned field") // "" would mean that there is nothing to do
}
