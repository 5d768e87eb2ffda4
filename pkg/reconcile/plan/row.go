// SPDX-License-Identifier: Apache-2.0

// A kind of object that owners own, as a row of a table. A row holds everything specific to
// the kind. The rest is the same for every kind and written once.

package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Row declares a kind of object that owners of the type F own. Its functions are pure.
type Row[F, T Object] struct {
	// Kind is the name of the kind in messages, such as "ConfigMap".
	Kind string
	// Resource is the kind's resource in the API.
	Resource schema.GroupVersionResource
	// NamedBy is the field of the owner that a user changes to choose another name. It is
	// empty if there is none.
	NamedBy string
	// ScaledBy is the field of the owner that sets the number of Pods and may be omitted, such
	// as "spec.replicas", or "".
	ScaledBy string
	// Name returns the name of the child that an owner wants.
	Name func(owner F) string
	// Wanted reports whether an owner wants a child. nil means that each does.
	Wanted func(owner F) bool
	// Names replaces Name and Wanted if an owner may want several children of the kind, which are a
	// set: their names, each once, in the order in which they are written. See set.go.
	Names func(owner F) []string
	// Namespace returns the namespace of the children, "" if the kind is cluster-scoped. nil means that of the
	// owner. Unless the owners are cluster-scoped, Kubernetes does not follow their references there, so that
	// the children get marks instead, and the owners' kind needs a Finalizer: see marks.go.
	Namespace func(owner F) string
	// OneAtATime is true if a child of a set is written only when those before it are ready.
	OneAtATime bool
	// Init sets the immutable fields of a new child, such as a selector. The caller sets the
	// name, namespace, owner and owned fields. nil means that there are none.
	Init func(child T, owner F)
	// SetOwned sets the fields that an owner owns, and no others. It receives a copy: the fields
	// that it changes have drifted. view has the children of the earlier rows.
	SetOwned func(child T, owner F, view *View)
	// Keep copies to kept the fields that SetOwned, Judge and Report read. The caches drop the
	// rest.
	Keep func(kept, found T)
	// Judge returns whether a child in its desired state is ready. nil means that it is.
	Judge func(child T) Readiness
	// Serves reports whether a child with an earlier name does work that must continue until
	// its successor is ready. nil means that none does.
	Serves func(child T) bool
	// Inherit copies to a new child the values of the earlier one that the owner leaves to
	// others, such as an autoscaler's number. It returns false if the owner leaves none. It may
	// be nil.
	Inherit func(child, earlier T, owner F) bool
	// Restarts reports whether an update restarts the Pods that the child runs. nil means that
	// none does.
	Restarts func(before, after T) bool
	// Report adds what the child reports to the status of an owner, which is a copy. It is called for
	// each child. It may be nil.
	Report func(owner F, child T)
	// Condition is the type of a condition, such as "Exposed", that the owner has while it has
	// the child. Judge determines its status. "" means none.
	Condition string
	// Blocks is true if the later rows have to wait until this child is in its desired state.
	Blocks bool
}

// ChildKind is a Row without its types, for the loop, which is the same for every kind. None
// of its functions is nil, except that it has either Names, or Name and Wanted. That of a Call has none of them.
type ChildKind struct {
	Row[Owner, Object]

	// OwnerKind is the kind of the owners.
	OwnerKind *Kind

	typeOf reflect.Type
	flaws  []string
	// learn, poll and hasDigest are those of a reference: see Ref.
	learn     func(object Object) Seen
	poll      time.Duration
	hasDigest bool
	// isElsewhere is true for children that have marks: see marks.go.
	isElsewhere bool
	// isItself is true for fields of the owner itself: see OfItself.
	isItself bool
	// call is that of a Call.
	call *Call[Owner, any]
	// isFinalizer is true for the step that writes the kind's finalizer.
	isFinalizer bool
}

// Of returns the row without its types, as a row in the table of an owner's kind.
func (r Row[F, T]) Of(owner *Kind) *ChildKind {
	c := &ChildKind{OwnerKind: owner, flaws: r.flaws(owner), typeOf: reflect.TypeFor[T]()}
	c.Kind, c.Resource, c.NamedBy, c.ScaledBy, c.Condition = r.Kind, r.Resource, r.NamedBy, r.ScaledBy, r.Condition
	c.Blocks, c.OneAtATime = r.Blocks, r.OneAtATime
	if r.Names != nil {
		c.Names = func(owner Owner) []string { return r.Names(typed[F](owner)) }
	} else {
		c.Name = func(owner Owner) string { return r.Name(typed[F](owner)) }
		c.Wanted = func(owner Owner) bool { return r.Wanted == nil || r.Wanted(typed[F](owner)) }
	}
	c.Namespace = Owner.GetNamespace
	if r.Namespace != nil {
		c.Namespace = func(owner Owner) string { return r.Namespace(typed[F](owner)) }
		c.isElsewhere = !owner.ClusterScoped && !owner.IsOthers()
	}
	c.Init = func(child Object, owner Owner) {
		if r.Init != nil {
			r.Init(child.(T), typed[F](owner))
		}
	}
	c.SetOwned = func(child Object, owner Owner, view *View) { r.SetOwned(child.(T), typed[F](owner), view) }
	c.Keep = func(kept, found Object) { r.Keep(kept.(T), found.(T)) }
	c.Judge = func(child Object) Readiness {
		if r.Judge == nil {
			return Readiness{Status: metav1.ConditionTrue}
		}
		return r.Judge(child.(T))
	}
	c.Serves = func(child Object) bool { return r.Serves != nil && r.Serves(child.(T)) }
	c.Inherit = func(child, earlier Object, owner Owner) bool {
		return r.Inherit != nil && r.Inherit(child.(T), earlier.(T), typed[F](owner))
	}
	c.Restarts = func(before, after Object) bool { return r.Restarts != nil && r.Restarts(before.(T), after.(T)) }
	c.Report = func(owner Owner, child Object) {
		if r.Report != nil {
			r.Report(typed[F](owner), child.(T))
		}
	}
	return c
}

// flaws returns what is wrong with the declaration of a row. Without Keep, the cache would keep none
// of the fields that SetOwned sets, or all of each object.
func (r Row[F, T]) flaws(owner *Kind) (flaws []string) {
	for _, name := range []string{"Kind", "Resource", "SetOwned", "Keep"} {
		if reflect.ValueOf(r).FieldByName(name).IsZero() {
			flaws = append(flaws, "lacks "+name)
		}
	}
	switch {
	case owner.IsOthers() && r.Report != nil:
		flaws = append(flaws, "has Report, but a "+owner.Name+" has no status of this program")
	case owner.ClusterScoped && r.Namespace == nil:
		flaws = append(flaws, "lacks Namespace, because a cluster-scoped "+owner.Name+" has none")
	case !owner.ClusterScoped && r.Namespace != nil && !owner.IsOthers() && owner.Finalizer == "":
		flaws = append(flaws, "has Namespace, where Kubernetes does not follow the references of a namespaced "+owner.Name+", whose kind lacks Finalizer")
	}
	switch {
	case r.Name == nil && r.Names == nil:
		flaws = append(flaws, "lacks Name or Names")
	case r.Names == nil && r.OneAtATime:
		flaws = append(flaws, "has OneAtATime, which is for a set, but not Names")
	case r.Names != nil && (r.Name != nil || r.Wanted != nil):
		flaws = append(flaws, "has Names, which replaces Name and Wanted, and one of them")
	case r.Names != nil && r.Inherit != nil:
		flaws = append(flaws, "has Inherit, but a child of a set has no earlier one")
	case r.Names != nil:
		if name := duplicateIn(namesOfNew(r.Names)); name != "" {
			flaws = append(flaws, fmt.Sprintf("wants the name %q twice", name))
		}
	}
	return flaws
}

// Empty returns a new object of the kind.
func (c *ChildKind) Empty() Object {
	return reflect.New(c.typeOf.Elem()).Interface().(Object) //nolint:forcetypeassert // it is T
}

// Check returns an error that says what is wrong with the declaration of a row.
func (c *ChildKind) Check() error {
	if len(c.flaws) == 0 {
		return nil
	}
	return fmt.Errorf("the row of the kind %q %s", c.Kind, strings.Join(c.flaws, ", and "))
}

// LogKey returns the key of a child in structured logs, such as "configMap".
func (c *ChildKind) LogKey() string { return strings.ToLower(c.Kind[:1]) + c.Kind[1:] }

// Desired returns a child to create for an owner, as the successor of an earlier one if that is
// not nil. Of a set, it returns the first.
func (c *ChildKind) Desired(owner Owner, earlier Object, view *View) Object {
	return c.DesiredNamed(owner, c.NamesFor(owner)[0], earlier, view)
}

// DesiredNamed is Desired for the child of a set with a name.
func (c *ChildKind) DesiredNamed(owner Owner, name string, earlier Object, view *View) Object {
	child := c.Empty()
	child.SetName(name)
	child.SetNamespace(c.Namespace(owner))
	c.Init(child, owner)
	if earlier != nil {
		c.Inherit(child, earlier, owner)
	}
	c.SetOwned(child, owner, view)
	c.OwnerKind.own(child, owner)
	return child
}

// Inherits reports whether a new child of an owner inherits values from an earlier one.
func (c *ChildKind) Inherits(earlier Object, owner Owner) bool {
	return c.Inherit(c.Empty(), earlier, owner)
}

// DesiredUpdate returns the object that an update should store instead of the live one, or
// nil if the live one needs no update, which means that the cache was stale.
func (c *ChildKind) DesiredUpdate(live Object, owner Owner, view *View) Object {
	switch c.decide(owner, live.GetName(), live, view).Action {
	case ActionUpdate:
		return c.withOwnedFields(live, owner, view)
	case ActionAdopt:
		return c.adopted(live, owner, view)
	default:
		return nil
	}
}

// IsRestarting reports whether an update to the desired state restarts the child's Pods.
func (c *ChildKind) IsRestarting(child Object, owner Owner, view *View) bool {
	return c.Restarts(child, c.withOwnedFields(child, owner, view))
}

// withOwnedFields returns a copy of a child with its owned fields in the desired state.
// Everything else is as found, including the resourceVersion, so that the API server
// refuses the copy as an update if anyone has written in between.
func (c *ChildKind) withOwnedFields(found Object, owner Owner, view *View) Object {
	wanted := CopyOf(found)
	c.SetOwned(wanted, owner, view)
	c.OwnerKind.renewControllerRef(wanted)
	if c.OwnerKind.isMarkedBy(found, owner) {
		c.OwnerKind.own(wanted, owner)
	}
	return wanted
}

// DescribeDrift describes the owned fields in which a child differs from its desired state.
// It returns "" if there are none.
func (c *ChildKind) DescribeDrift(found Object, owner Owner, view *View) string {
	if !c.OwnerKind.IsControlledBy(found, owner) {
		return fmt.Sprintf("this %s is not its controller", c.OwnerKind.Name)
	}
	wanted := c.withOwnedFields(found, owner, view)
	// Most are equal. reflect.DeepEqual confirms that eight times as fast, but treats nil and
	// empty lists as different.
	if reflect.DeepEqual(found, wanted) || equality.Semantic.DeepEqual(found, wanted) {
		return ""
	}
	return cmp.Or(describeDifferences(found, wanted), "an owned field") // "" would mean that there is nothing to do
}
