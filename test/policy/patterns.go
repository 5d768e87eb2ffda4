// SPDX-License-Identifier: Apache-2.0

// What the children of all Foos have in common, as expressions of CEL.

package policy

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pattern says what a value is in the new children of all Foos.
type pattern struct {
	// fields are those of an object or a map, and items the elements of a list.
	fields map[string]*pattern
	items  []*pattern
	// text is any other value as an expression.
	text string
	// free is set if the value depends on more of the Foo than its name, or is the API
	// server's choice, and optional if some children do not have it.
	free, optional bool
}

// patternOf returns the pattern of values of the children of different Foos, in which nameOfAny
// stands for the Foo's name. A value that a child does not have is nil.
func patternOf(values []any) *pattern {
	present := slices.DeleteFunc(slices.Clone(values), func(value any) bool { return value == nil })
	p := &pattern{free: true}
	switch {
	case len(present) < 2: // too few to know
	case isOneOf[map[string]any](present...):
		p = patternOfFields(present)
	case isOneOf[[]any](present...):
		p = patternOfItems(present)
	case !slices.ContainsFunc(present, func(value any) bool { return !reflect.DeepEqual(value, present[0]) }):
		p = &pattern{text: expressionOf(present[0])}
	}
	p.optional = len(present) < len(values)
	return p
}

func patternOfFields(values []any) *pattern {
	p := &pattern{fields: map[string]*pattern{}}
	for _, value := range values {
		for key := range fieldsIn(value) {
			if p.fields[key] != nil {
				continue
			}
			inner := make([]any, len(values))
			for i := range values {
				inner[i] = fieldsIn(values[i])[key]
			}
			p.fields[key] = patternOf(inner)
		}
	}
	image, policy := p.fields["image"], p.fields["imagePullPolicy"]
	if image != nil && image.text == imageVariable && policy != nil {
		policy.text = "variables.pullPolicy"
	}
	return p
}

func patternOfItems(values []any) *pattern {
	p := &pattern{items: []*pattern{}}
	for i := range elementsIn(values[0]) {
		inner := make([]any, len(values))
		for j := range values {
			if len(elementsIn(values[j])) != len(elementsIn(values[0])) {
				return &pattern{free: true}
			}
			inner[j] = elementsIn(values[j])[i]
		}
		p.items = append(p.items, patternOf(inner))
	}
	return p
}

// shippedImage is the image of the shipped service account.
const shippedImage = "nginx:latest"

const (
	imageVariable = "variables.image"
	nameOfFoo     = "string(variables.controllers[0].name)"
)

// nameOfAny stands for the name of a Foo.
const nameOfAny = "\uE000"

// expressionOf returns an expression for a value that is the same for all Foos.
func expressionOf(value any) string {
	text, isText := value.(string)
	switch {
	case !isText:
		return fmt.Sprint(value)
	case text == shippedImage:
		return imageVariable
	case text == "":
		return quote(text)
	}
	var parts []string
	for i, part := range strings.Split(text, nameOfAny) {
		if i > 0 {
			parts = append(parts, nameOfFoo)
		}
		if part != "" {
			parts = append(parts, quote(part))
		}
	}
	return strings.Join(parts, " + ")
}

// quote returns a text as one of CEL, whose escape sequences are those of Go.
func quote(text string) string {
	quoted := strconv.Quote(text)
	if !strings.ContainsAny(quoted, `'\`) {
		return "'" + quoted[1:len(quoted)-1] + "'"
	}
	return quoted
}

// chosen lets the API server choose the value at a path, which ends with [*] for each
// element of a list.
func (p *pattern) chosen(path ...string) {
	switch {
	case p == nil || p.free:
	case len(path) == 0:
		*p = pattern{free: true, optional: true}
	case path[0] == "[*]":
		for _, item := range p.items {
			item.chosen(path[1:]...)
		}
	default:
		if p.fields[path[0]] == nil && len(path) == 1 {
			p.fields[path[0]] = &pattern{free: true}
		}
		p.fields[path[0]].chosen(path[1:]...)
	}
}

// expression writes the pattern as an expression, with line breaks after which it is
// indented. A free value is what an object has at a path, an expression.
func (p *pattern) expression(path, indent string) string {
	var entries []string
	switch {
	case p.fields != nil:
		for _, key := range slices.Sorted(maps.Keys(p.fields)) {
			entries = append(entries, p.fields[key].entry(quote(key)+": ", path+optional(key), indent+"  "))
		}
		return "{\n" + indent + "  " + strings.Join(entries, ",\n"+indent+"  ") + "}"
	case p.items != nil:
		for i, item := range p.items {
			entries = append(entries, item.entry("", fmt.Sprintf("%s[?%d]", path, i), indent))
		}
		return "[" + strings.Join(entries, ", ") + "]"
	}
	return p.text
}

// entry writes the pattern as an entry of a map or a list. Their values must have one
// type: dyn(...) hides others.
func (p *pattern) entry(key, path, indent string) string {
	switch {
	case p.free:
		return "?" + key + path
	case p.optional:
		return fmt.Sprintf("?%s%s.hasValue() ? optional.of(dyn(%s)) : optional.none()", key, path, p.expression(path, indent))
	}
	return key + "dyn(" + p.expression(path, indent) + ")"
}

// hasFree reports whether a value is free, or one within it.
func (p *pattern) hasFree() bool {
	if p == nil || p.free {
		return p != nil
	}
	for _, inner := range p.fields {
		if inner.hasFree() {
			return true
		}
	}
	return slices.ContainsFunc(p.items, (*pattern).hasFree)
}

// itemNamed returns the element of a list with a name, or nil.
func (p *pattern) itemNamed(name string) *pattern {
	for _, item := range p.items {
		if item.fields["name"] != nil && item.fields["name"].text == quote(name) {
			return item
		}
	}
	return nil
}

// isFreeAt reports whether the value at a path is free, or is within one.
func (p *pattern) isFreeAt(at path) bool {
	if p == nil || p.free || len(at) == 0 {
		return p != nil && p.free
	}
	if index, ok := at[0].(int); ok {
		return index < len(p.items) && p.items[index].isFreeAt(at[1:])
	}
	return p.fields[at[0].(string)].isFreeAt(at[1:])
}

var identifier = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*$`)

// optional selects a field that may be missing.
func optional(key string) string {
	if identifier.MatchString(key) {
		return ".?" + key
	}
	return "[?" + quote(key) + "]"
}

// path leads to a field of an object: a string is a key, an int an index.
type path []any
