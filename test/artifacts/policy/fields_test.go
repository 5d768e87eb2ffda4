// SPDX-License-Identifier: Apache-2.0

// Objects as maps and lists, and paths in them.

package policy

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/test/footest"
)

// path leads to a field of an object: a string is a key, an int an index.
type path []any

// fieldsIn returns the fields of an object or a map, or nil.
func fieldsIn(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// fieldsOf returns an object as maps and lists.
func fieldsOf(t *testing.T, of runtime.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	footest.Must(t, err)
	return fields
}

// differences calls visit for the outermost paths at which two values have no object, map or list of
// one length in common.
func differences(a, b any, at path, visit func(at path)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	fieldsA, fieldsB := fieldsIn(a), fieldsIn(b)
	listA, _ := a.([]any)
	listB, _ := b.([]any)
	switch {
	case fieldsA != nil && fieldsB != nil:
		for key := range sets.KeySet(fieldsA).Union(sets.KeySet(fieldsB)) {
			differences(fieldsA[key], fieldsB[key], append(slices.Clip(at), key), visit)
		}
	case listA != nil && len(listA) == len(listB):
		for i := range listA {
			differences(listA[i], listB[i], append(slices.Clip(at), i), visit)
		}
	default:
		visit(at)
	}
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
