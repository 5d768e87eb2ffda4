// SPDX-License-Identifier: Apache-2.0

// The fields of objects by their paths: listing, changing and comparing them.

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// path leads to a field of an object: a string is a key, an int an index.
type path []any

// fieldsOf returns an object as maps and lists.
func fieldsOf(t *testing.T, of runtime.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	must(t, err)
	return fields
}

// walk calls visit for each field of value, the outer ones first.
func walk(value any, at path, visit func(at path, value any)) {
	if len(at) > 0 {
		visit(at, value)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(value[key], append(slices.Clip(at), key), visit)
		}
	case []any:
		for i, element := range value {
			walk(element, append(slices.Clip(at), i), visit)
		}
	}
}

// with returns a copy of value with another value at a path, or without what is there if
// that is nil. Maps and elements of lists that are missing on the way are added.
func with(value any, at path, to any) any {
	if len(at) == 0 {
		return to
	}
	if index, ok := at[0].(int); ok {
		list, _ := value.([]any)
		list = slices.Clone(list)
		if index >= len(list) {
			list, index = append(list, nil), len(list)
		}
		list[index] = with(list[index], at[1:], to)
		return slices.DeleteFunc(list, func(element any) bool { return element == nil })
	}
	fields, _ := value.(map[string]any)
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	key := at[0].(string)
	if fields[key] = with(fields[key], at[1:], to); fields[key] == nil {
		delete(fields, key)
	}
	return fields
}

// another returns a value that is not the given one, of the same type, or nil if it has
// fields or elements.
func another(value any) any {
	switch value := value.(type) {
	case string:
		return "1" + value // of a quantity, another quantity
	case int64:
		return value + 1
	case float64:
		return value + 1
	case bool:
		return !value
	}
	return nil
}

// name returns a path in words, such as spec.containers[nginx].image: elements of a list
// by their names, where they have any.
func (p path) name(within any) string {
	var words strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case string:
			words.WriteString("." + step)
			fields, _ := within.(map[string]any)
			within = fields[step]
		case int:
			list, _ := within.([]any)
			within = list[step]
			fmt.Fprintf(&words, "[%v]", nameOf(within, step))
		}
	}
	return strings.TrimPrefix(words.String(), ".")
}

// nameOf returns what tells a list's element from the others, or its index. Two mounts of
// one volume have the same name.
func nameOf(element any, index int) any {
	fields, _ := element.(map[string]any)
	for _, key := range []string{"mountPath", "devicePath", "name"} {
		if fields[key] != nil {
			return fields[key]
		}
	}
	return index
}
