// SPDX-License-Identifier: Apache-2.0

// The owned fields of a row, by what its SetOwned does to children with random content.

package policy

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// part is a value within the children of a kind, as far as SetOwned changes it.
type part struct {
	// whole is set if it replaces or removes the value, and free if a policy can't know by
	// which one. loose is set if it does not know a part of that.
	whole, free, loose bool
	// null is set if a list without elements may be null, as that of a field that is
	// required is.
	null bool
	// fields are those of an object or a map that it changes.
	fields map[string]*part
	// gone is set if it removes some of them, and stays if others than those of a new child
	// stay.
	gone, stays bool
	// each is what it changes in any element of a list. replaced is set if it also replaces
	// a list of another length by that of a new child, and resized if by something else.
	each              *part
	replaced, resized bool
	// named is what it changes in the elements of some names, which it adds if they are
	// missing. moved is set if it changes more of the list than that.
	named map[string]*part
	moved bool
}

// observe adds how SetOwned has changed a value. asked is the value in a new child.
func (p *part) observe(before, after, asked any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	p.free = p.free || !reflect.DeepEqual(after, asked)
	switch {
	case isOneOf[map[string]any](before, after) && after != nil:
		p.observeFields(fieldsIn(before), fieldsIn(after), fieldsIn(asked))
	case isOneOf[[]any](before, after) && after != nil:
		p.observeElements(elementsIn(before), elementsIn(after), elementsIn(asked))
	default:
		p.whole = true
	}
}

func (p *part) observeFields(before, after, asked map[string]any) {
	for key := range before {
		_, isThere := after[key]
		p.gone = p.gone || !isThere
		p.stays = p.stays || isThere && !reflect.DeepEqual(after[key], asked[key])
	}
	for key := range sets.KeySet(before).Union(sets.KeySet(after)) {
		if reflect.DeepEqual(before[key], after[key]) {
			continue
		}
		inner := p.field(key)
		inner.null = inner.null || isNull(before, key) || isNull(after, key)
		inner.observe(before[key], after[key], asked[key])
	}
}

// observeElements adds how a list has changed in both ways, of which settle chooses one.
func (p *part) observeElements(before, after, asked []any) {
	p.observeNamed(before, after, asked)
	if len(before) != len(after) {
		p.replaced = true
		p.resized = p.resized || !reflect.DeepEqual(after, asked)
		return
	}
	if p.each == nil {
		p.each = &part{}
	}
	for i := range after {
		p.each.observe(before[i], after[i], elementAt(asked, i))
	}
}

func (p *part) observeNamed(before, after, asked []any) {
	known := map[string]any{}
	for _, element := range asked {
		known[nameIn(element)] = element
	}
	delete(known, "")
	for i, element := range after {
		wanted, isKnown := known[nameIn(element)]
		was := elementAt(before, i)
		switch {
		case i >= len(before) && isKnown:
			p.element(nameIn(element))
		case isKnown && nameIn(was) == nameIn(element):
			p.element(nameIn(element)).observe(was, element, wanted)
		default:
			p.moved = p.moved || !reflect.DeepEqual(was, element)
		}
	}
	p.moved = p.moved || len(after) < len(before)
}

func (p *part) field(key string) *part {
	if p.fields == nil {
		p.fields = map[string]*part{}
	}
	if p.fields[key] == nil {
		p.fields[key] = &part{}
	}
	return p.fields[key]
}

func (p *part) element(name string) *part {
	if p.named == nil {
		p.named = map[string]*part{}
	}
	if p.named[name] == nil {
		p.named[name] = &part{}
	}
	return p.named[name]
}

// settle decides what the observations mean, and marks what a policy can't know, by the
// pattern of a new child.
func (p *part) settle(asked *pattern) {
	switch {
	case p.each == nil && p.named == nil && !p.replaced: // no list
	case p.named != nil && !p.moved:
		p.each, p.replaced = nil, false
	case p.each == nil || p.resized:
		p.whole = true
	default:
		p.named = nil
	}
	if asked == nil {
		asked = &pattern{}
	} else {
		p.free, p.loose = p.free || asked.free, asked.hasFree()
	}
	for key, inner := range p.fields {
		inner.settle(asked.fields[key])
	}
	for name, inner := range p.named {
		inner.settle(asked.itemNamed(name))
	}
	if p.each != nil {
		inner := (*pattern)(nil)
		if len(asked.items) > 0 {
			inner = asked.items[0]
		}
		p.each.settle(inner)
	}
}

// isWhole reports whether nothing smaller than the value is owned.
func (p *part) isWhole() bool {
	isLeaf := p.fields == nil && p.each == nil && p.named == nil
	// If nothing of others stays in an object or a map, it is replaced.
	return p.whole || isLeaf || p.gone && !p.stays || p.each != nil && p.each.isWhole()
}

// isFreeAt reports whether a policy can't know the value at a path within a value, because
// it does not know what the Foo asks for.
func (p *part) isFreeAt(at path, within any) bool {
	switch {
	case p == nil:
		return false
	case p.isWhole():
		return p.free || p.loose
	case len(at) == 0:
		return false
	}
	if index, ok := at[0].(int); ok {
		element, inner := elementAt(elementsIn(within), index), p.each
		if named := p.named[nameIn(element)]; named != nil {
			inner = named
		}
		return inner.isFreeAt(at[1:], element)
	}
	key := at[0].(string)
	return p.fields[key].isFreeAt(at[1:], fieldsIn(within)[key])
}

// isOneOf reports whether two values are of a type, or one of them is missing.
func isOneOf[T any](values ...any) bool {
	return !slices.ContainsFunc(values, func(value any) bool {
		_, ok := value.(T)
		return !ok && value != nil
	})
}

func fieldsIn(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

func elementsIn(value any) []any {
	elements, _ := value.([]any)
	return elements
}

func isNull(fields map[string]any, key string) bool {
	value, found := fields[key]
	return found && value == nil
}

func nameIn(element any) string {
	name, _ := fieldsIn(element)["name"].(string)
	return name
}

// elementAt returns an element of a list, or nil.
func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
