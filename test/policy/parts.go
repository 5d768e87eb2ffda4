// SPDX-License-Identifier: Apache-2.0

// What a row owns, by what its SetOwned does to children with random content.

package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	// gone is set if it removes keys of a map, and stays if others stay in the map.
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

// observe adds how SetOwned has changed a value of a type. asked is the value in a new
// child.
func (p *part) observe(of reflect.Type, before, after, asked any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	p.free = p.free || !reflect.DeepEqual(after, asked)
	switch {
	case isOneOf[map[string]any](before, after) && after != nil:
		p.observeFields(of, fieldsIn(before), fieldsIn(after), fieldsIn(asked))
	case isOneOf[[]any](before, after) && after != nil:
		p.observeElements(of, elementsIn(before), elementsIn(after), elementsIn(asked))
	default:
		p.whole = true
	}
}

func (p *part) observeFields(of reflect.Type, before, after, asked map[string]any) {
	for key := range before {
		_, isAsked := asked[key]
		_, stays := after[key]
		p.gone = p.gone || !stays && isMap(of)
		p.stays = p.stays || stays && !isAsked
	}
	for key := range union(before, after) {
		if reflect.DeepEqual(before[key], after[key]) {
			continue
		}
		inner := p.field(key)
		inner.null = inner.null || isNull(before, key) || isNull(after, key)
		inner.observe(typeOfField(of, key), before[key], after[key], asked[key])
	}
}

// observeElements adds how a list has changed in both ways, of which settle chooses one.
func (p *part) observeElements(of reflect.Type, before, after, asked []any) {
	inner := typeOfField(of, "")
	p.observeNamed(inner, before, after, asked)
	if len(before) != len(after) {
		p.replaced = true
		p.resized = p.resized || !reflect.DeepEqual(after, asked)
		return
	}
	if p.each == nil {
		p.each = &part{}
	}
	for i := range after {
		p.each.observe(inner, before[i], after[i], at(asked, i))
	}
}

func (p *part) observeNamed(inner reflect.Type, before, after, asked []any) {
	known := map[string]any{}
	for _, element := range asked {
		known[nameIn(element)] = element
	}
	delete(known, "")
	for i, element := range after {
		wanted, isKnown := known[nameIn(element)]
		was := at(before, i)
		switch {
		case i >= len(before) && isKnown:
			p.element(nameIn(element))
		case isKnown && nameIn(was) == nameIn(element):
			p.element(nameIn(element)).observe(inner, was, element, wanted)
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
	// If no key of others stays in a map, it is replaced.
	return p.whole || p.gone && !p.stays || p.fields == nil && p.each == nil && p.named == nil || p.each != nil && p.each.isWhole()
}

// names returns the owned fields within a value, such as spec.replicas,
// containers[nginx].image and ports[*].port.
func (p *part) names(at string) sets.Set[string] {
	names := sets.New[string]()
	if p.isWhole() || p.replaced {
		names.Insert(at)
	}
	if p.isWhole() {
		return names
	}
	for key, inner := range p.fields {
		names = names.Union(inner.names(strings.TrimPrefix(at+"."+key, ".")))
	}
	for name, inner := range p.named {
		names = names.Union(inner.names(fmt.Sprintf("%s[%s]", at, name)))
	}
	if p.each != nil {
		names = names.Union(p.each.names(at + "[*]"))
	}
	return names
}

// allows reports whether two states of a value differ only where a policy can't know what
// the Foo asks for.
func (p *part) allows(before, after any) bool {
	switch {
	case reflect.DeepEqual(before, after):
		return true
	case p == nil:
		return false
	case p.isWhole():
		return p.free || p.loose
	case isOneOf[map[string]any](before, after):
		b, a := fieldsIn(before), fieldsIn(after)
		for key := range union(b, a) {
			if !p.fields[key].allows(b[key], a[key]) {
				return false
			}
		}
		return true
	}
	b, a := elementsIn(before), elementsIn(after)
	if len(b) != len(a) {
		return false
	}
	for i := range b {
		inner := p.each
		if named := p.named[nameIn(b[i])]; named != nil {
			inner = named
		}
		if !inner.allows(b[i], a[i]) {
			return false
		}
	}
	return true
}

// typeOfField returns the type of a field by its name in JSON, or of the elements of a map
// or list, or nil.
func typeOfField(of reflect.Type, key string) reflect.Type {
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == nil:
		return nil
	case of.Kind() == reflect.Map, of.Kind() == reflect.Slice:
		return of.Elem()
	case of.Kind() != reflect.Struct:
		return nil
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == key {
			return field.Type
		}
		if name == "" && field.Anonymous {
			if inner := typeOfField(field.Type, key); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// isMap reports whether a type has keys that are not fields.
func isMap(of reflect.Type) bool {
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of == nil || of.Kind() == reflect.Map
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

// at returns an element of a list, or nil.
func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// union returns the keys of two maps.
func union(a, b map[string]any) sets.Set[string] {
	return sets.KeySet(a).Union(sets.KeySet(b))
}
