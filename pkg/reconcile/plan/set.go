// SPDX-License-Identifier: Apache-2.0

// Sets: several children of one kind. A child's name is its identity, so that a set needs nothing but a
// function that returns the names. Each child has its own step, back-off and memory: one that the
// API server refuses does not hold up the others.
//
// Children that are no longer wanted are deleted one after the other, the last first, in the order of
// the numbers at the end of their names. Those that serve stay until all wanted ones are ready, whether the
// set shrinks or its names change.

package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// IsSet reports whether an owner may want several children of the kind.
func (c *ChildKind) IsSet() bool { return c.Names != nil }

// wantsNone reports whether an owner wants no child of the kind. In its deletion, it wants none elsewhere.
func (c *ChildKind) wantsNone(owner Owner) bool {
	return c.isElsewhere && IsTerminating(owner) || !c.IsSet() && !c.Wanted(owner)
}

// NamesFor returns the names of the children that an owner wants, each once. They may be a part of the owner.
func (c *ChildKind) NamesFor(owner Owner) []string {
	switch {
	case c.wantsNone(owner):
		return nil
	case !c.IsSet():
		return []string{c.Name(owner)}
	}
	names := c.Names(owner)
	if duplicateIn(names) == "" {
		return names
	}
	unique, seen := make([]string, 0, len(names)), sets.New[string]()
	for _, name := range names {
		if !seen.Has(name) {
			unique = append(unique, name)
		}
		seen.Insert(name)
	}
	return unique
}

// KeyFor returns the key of an owner's child with a name.
func (c *ChildKind) KeyFor(owner Owner, name string) cache.ObjectName {
	return cache.ObjectName{Namespace: c.Namespace(owner), Name: name}
}

// Wants reports whether an owner wants a child with a key, or names that object.
func (c *ChildKind) Wants(owner Owner, key cache.ObjectName) bool {
	switch {
	case c.Namespace(owner) != key.Namespace || c.wantsNone(owner):
		return false
	case c.IsSet():
		return slices.Contains(c.Names(owner), key.Name)
	}
	return c.Name(owner) == key.Name
}

// PartsOf returns the parts of the steps for the children that an owner wants: see Step.
func (c *ChildKind) PartsOf(owner Owner) []string {
	if !c.IsSet() {
		return []string{c.Kind}
	}
	var parts []string
	for _, name := range c.NamesFor(owner) {
		parts = append(parts, c.part(name))
	}
	return parts
}

func (c *ChildKind) part(name string) string {
	if c.IsReference() {
		return "reference " + c.Kind + " " + name
	}
	return c.Kind + " " + name
}

// DecideSet decides what an owner needs of a set. It returns a step for each child that it wants, or one
// if it wants none. named returns the object with a name, or nil.
func (c *ChildKind) DecideSet(owner Owner, named func(name string) Object, controlled []Object, view *View) []*Step {
	var steps []*Step
	names, taken := c.NamesFor(owner), true
	for _, name := range names {
		step := c.decide(owner, name, named(name), view)
		step.Part = c.part(name)
		steps, taken = append(steps, step), taken && c.isInPlace(step.Action, step.Found)
	}
	if len(names) == 0 {
		step := c.decide(owner, "", nil, view)
		step.Unwanted, step.Action = true, ActionNone
		if IsTerminating(owner) && !c.isElsewhere {
			step.Action = ActionWait
		}
		steps = []*Step{step}
	} else {
		steps[0].Duplicate = duplicateIn(c.Names(owner))
	}
	wanted, in := sets.New(names...), c.Namespace(owner)
	isWanted := func(child Object) bool { return child.GetNamespace() == in && wanted.Has(child.GetName()) }
	obsolete, inService := c.notAskedFor(owner, controlled, isWanted, taken)
	slices.Reverse(obsolete)
	last := steps[len(steps)-1]
	for i, step := range steps {
		if i < len(inService) {
			step.InService = inService[i : i+1]
		}
		if step == last {
			step.InService, step.Obsolete = inService[min(i, len(inService)):], obsolete
		}
		step.suspend()
	}
	return steps
}

// byNumber compares names so that "web-10" comes after "web-2".
func byNumber(a, b Object) int {
	prefixA, numberA := splitNumber(a.GetName())
	prefixB, numberB := splitNumber(b.GetName())
	return cmp.Or(strings.Compare(prefixA, prefixB), cmp.Compare(len(numberA), len(numberB)), strings.Compare(numberA, numberB))
}

func splitNumber(name string) (prefix, number string) {
	prefix = strings.TrimRight(name, "0123456789")
	return prefix, strings.TrimLeft(name[len(prefix):], "0")
}

// duplicateIn returns a name that occurs twice, or "".
func duplicateIn(names []string) string {
	seen := sets.New[string]()
	for _, name := range names {
		if seen.Has(name) {
			return name
		}
		seen.Insert(name)
	}
	return ""
}

// namesOfNew returns the names that an owner without a spec wants, or none if the function needs one.
func namesOfNew[F Object](names func(F) []string) (result []string) {
	defer func() { _ = recover() }()                                  // a function may rely on what the API server validates
	owner := reflect.New(reflect.TypeFor[F]().Elem()).Interface().(F) //nolint:forcetypeassert // the type of F
	return names(owner)
}
