// SPDX-License-Identifier: Apache-2.0

// The objects that owners name and do not own.

package rows

import (
	"reflect"
	"slices"
	"time"
)

// Reference is a kind of object that owners name and do not own. Users write its objects.
type Reference struct {
	// Kind has the objects. It may be that of children, too.
	Kind *Kind
	// Names returns the names of the objects that an owner names.
	Names func(foo Object) []string
	// All are the names of the objects that there are at first.
	All []string
	// New returns an object that is fit, with 0 or as it is after the change of a number.
	New func(name string, change int32) Object
	// Spoil makes an object unfit. It is nil if none is.
	Spoil func(object Object)
	// Unfit returns the reason for which an owner is not ready by an object that it names, or "", and whether that
	// lasts until someone acts.
	Unfit func(object Object) (reason string, isStalled bool)
	// Blocks is true if the children have to wait until the objects are there and fit.
	Blocks bool
	// Poll is how long a read counts if the controller has no informer of the objects.
	Poll time.Duration
}

// IsNamedBy reports whether an owner names an object.
func (o *OwnerRow) IsNamedBy(foo Object, kind *Kind, name string) bool {
	return slices.ContainsFunc(o.References, func(reference *Reference) bool {
		return reference.Kind == kind && slices.Contains(reference.Names(foo), name)
	})
}

// Amend gives an object what it has after the change of a number. Its metadata stays.
func (r *Reference) Amend(object Object, change int32) {
	amended := r.New(object.GetName(), change)
	was, is := reflect.ValueOf(object).Elem(), reflect.ValueOf(amended).Elem()
	is.FieldByName("ObjectMeta").Set(was.FieldByName("ObjectMeta"))
	was.Set(is)
}
