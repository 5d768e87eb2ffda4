// SPDX-License-Identifier: Apache-2.0

// A kind of object that Foos own, as a row of a table: what is particular to it. All else
// is the same for every kind, and written once.

package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Object is a pointer to a type of the Kubernetes API, such as *corev1.ConfigMap.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// IsNil reports whether there is no object.
func IsNil[T Object](object T) bool { return object == *new(T) }

// Child declares a kind of object that Foos own. Its functions are pure.
type Child[T Object] struct {
	// Kind is the name of the kind in messages, such as "ConfigMap".
	Kind string
	// Resource is that of the kind in the API.
	Resource schema.GroupVersionResource
	// NamedBy is the field of the Foo that a user changes to get another name. It is empty
	// if there is none.
	NamedBy string
	// Name returns the name of the child that a Foo asks for.
	Name func(foo *samplev1alpha1.Foo) string
	// Wanted reports whether a Foo asks for a child. nil means that each does.
	Wanted func(foo *samplev1alpha1.Foo) bool
	// Empty returns a new object of the kind.
	Empty func() T
	// New returns a child with what nobody can change later, such as a selector. Name,
	// namespace, owner and owned fields are set for it.
	New func(foo *samplev1alpha1.Foo) T
	// SetOwned sets the fields that a Foo owns, and no others. It is called with a copy:
	// the fields that it changes have drifted. seen has the children of the earlier rows.
	SetOwned func(child T, foo *samplev1alpha1.Foo, seen Seen)
	// Keep copies into kept what SetOwned, Judge and Report read. The caches drop the rest.
	Keep func(kept, found T)
	// Judge says whether a child that is as the Foo asks is ready. nil means that it is.
	Judge func(child T) Verdict
	// Serves reports whether a child of an earlier name does work that would be missing
	// before its successor is ready. nil means that none does.
	Serves func(child T) bool
	// Inherit returns the function that copies into a new child what an earlier one has and
	// the Foo leaves to others, such as an autoscaler's number. Both may be nil.
	Inherit func(foo *samplev1alpha1.Foo) func(child, earlier T)
	// Restarts reports whether an update interrupts what the child runs. nil means that none
	// does.
	Restarts func(before, after T) bool
	// Report adds to a Foo's status what the child reports. It may be nil.
	Report func(status *samplev1alpha1.FooStatus, child T)
	// Blocks is true if the later rows have to wait until this child is as the Foo asks.
	Blocks bool
}

// Seen holds a Foo's children of the earlier rows by their kind, as they were last read
// or written. A child that the Foo does not have is missing.
type Seen map[string]metav1.Object

// Check returns an error that names what a row lacks.
func (c *Child[T]) Check() error {
	var missing []string
	for field, lacks := range map[string]bool{
		"Kind": c.Kind == "", "Resource": c.Resource.Empty(), "Name": c.Name == nil,
		"Empty": c.Empty == nil, "New": c.New == nil, "SetOwned": c.SetOwned == nil,
		// Without it, the cache would keep nothing that SetOwned sets, or all of each object.
		"Keep": c.Keep == nil,
	} {
		if lacks {
			missing = append(missing, field)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("the row of the kind %q lacks %s", c.Kind, strings.Join(missing, ", "))
}

// LogKey returns the key of a child in structured logs, such as "configMap".
func (c *Child[T]) LogKey() string { return strings.ToLower(c.Kind[:1]) + c.Kind[1:] }

// IsWanted reports whether a Foo asks for a child of the kind.
func (c *Child[T]) IsWanted(foo *samplev1alpha1.Foo) bool { return c.Wanted == nil || c.Wanted(foo) }

// Desired returns a child to create for a Foo.
func (c *Child[T]) Desired(foo *samplev1alpha1.Foo, seen Seen) T {
	return c.DesiredAfter(foo, *new(T), seen)
}

// DesiredAfter returns a child to create for a Foo in place of an earlier one, if there is
// one.
func (c *Child[T]) DesiredAfter(foo *samplev1alpha1.Foo, earlier T, seen Seen) T {
	child := c.New(foo)
	if c.Inherits(foo) && !IsNil(earlier) {
		c.Inherit(foo)(child, earlier)
	}
	child.SetName(c.Name(foo))
	child.SetNamespace(foo.Namespace)
	child.SetOwnerReferences([]metav1.OwnerReference{newControllerRef(foo)})
	c.SetOwned(child, foo, seen)
	return child
}

// Inherits reports whether a new child of a Foo depends on what an earlier one has.
func (c *Child[T]) Inherits(foo *samplev1alpha1.Foo) bool {
	return c.Inherit != nil && c.Inherit(foo) != nil
}

// withOwnedFields returns a copy of a child whose owned fields are as the Foo asks.
// Everything else is as found, the resourceVersion included, so that the API server
// refuses the copy as an update if anybody has written in between.
func (c *Child[T]) withOwnedFields(found T, foo *samplev1alpha1.Foo, seen Seen) T {
	wanted := found.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
	c.SetOwned(wanted, foo, seen)
	return wanted
}

// DescribeDrift returns in which owned fields a child differs from what the Foo asks for,
// or "" if in none.
func (c *Child[T]) DescribeDrift(found T, foo *samplev1alpha1.Foo, seen Seen) string {
	if !IsControlledBy(found, foo) {
		return fmt.Sprintf("this %s is not its controller", fooKind)
	}
	wanted := c.withOwnedFields(found, foo, seen)
	// Most are equal, and for those the library's comparison is eight times as fast. It
	// takes an empty list for another one than none.
	if reflect.DeepEqual(found, wanted) || equality.Semantic.DeepEqual(found, wanted) {
		return ""
	}
	return cmp.Or(describeDifferences(found, wanted), "an owned field") // "" would mean that nothing is to be done
}
