// SPDX-License-Identifier: Apache-2.0

// Drift of a kind that the tests do not know: other values in the fields that its author declares as owned.

package reconciletest

import (
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// drift changes each field of a child that its owner owns: the fields that SetOwned sets in an object that is
// otherwise as a new one.
func drift(c *plan.ChildKind, object plan.Object, owner plan.Owner, view *plan.View) {
	fresh := c.Empty()
	fresh.SetName(object.GetName())
	c.Init(fresh, owner)
	owned := plan.CopyOf(fresh)
	c.SetOwned(owned, owner, view)
	// isRepaired reports whether the controller takes a change back.
	isRepaired := func(changed plan.Object) bool {
		set := plan.CopyOf(changed)
		c.SetOwned(set, owner, view)
		return !equality.Semantic.DeepEqual(changed, set)
	}
	before := plan.CopyOf(object)
	for _, path := range leaves(fieldsOf(fresh), fieldsOf(owned), nil) {
		for _, value := range otherValues(valueAt(fieldsOf(before), path)) {
			if alone := c.Empty(); with(before, path, value, alone) && isRepaired(alone) {
				changed := c.Empty()
				if with(object, path, value, changed) {
					reflect.ValueOf(object).Elem().Set(reflect.ValueOf(changed).Elem())
				}
				break
			}
		}
	}
}

// fieldsOf returns an object as maps, lists, texts, numbers and truth values.
func fieldsOf(object plan.Object) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(plan.CopyOf(object))
	if err != nil {
		panic(err)
	}
	return fields
}

// with puts an object with another value of a field into changed, and reports whether there is such an object.
func with(object plan.Object, path []string, value any, changed plan.Object) bool {
	fields := fieldsOf(object)
	switch parent := valueAt(fields, path[:len(path)-1]).(type) {
	case map[string]any:
		parent[path[len(path)-1]] = value
	case []any:
		i, err := strconv.Atoi(path[len(path)-1])
		if err != nil || i >= len(parent) {
			return false
		}
		parent[i] = value
	default:
		return false
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, changed) == nil
}

// valueAt returns the value at a path, or nil if there is none.
func valueAt(value any, path []string) any {
	for _, name := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}

// leaves returns the paths of the values in after that are not in before. It leaves out the names of a
// list's elements: an element of another name is another one, and perhaps no one's.
func leaves(before, after any, path []string) (paths [][]string) {
	switch after := after.(type) {
	case map[string]any:
		for name, value := range after {
			paths = append(paths, leaves(valueAt(before, []string{name}), value, append(slices.Clone(path), name))...)
		}
		slices.SortFunc(paths, slices.Compare)
	case []any:
		for i, value := range after {
			name := strconv.Itoa(i)
			for _, leaf := range leaves(valueAt(before, []string{name}), value, append(slices.Clone(path), name)) {
				if len(leaf) != len(path)+2 || leaf[len(leaf)-1] != "name" {
					paths = append(paths, leaf)
				}
			}
		}
	default:
		if !reflect.DeepEqual(before, after) {
			paths = append(paths, path)
		}
	}
	return paths
}

// otherValues returns other values of the type of a value, of which not each need be a valid one.
func otherValues(value any) []any {
	switch value := value.(type) {
	case string:
		return []any{"drifted", "ZHJpZnRlZA==", "7", "2001-01-01T00:00:00Z"} // a text, bytes, a quantity, a time
	case int64:
		return []any{value + 7}
	case float64:
		return []any{value + 7}
	case bool:
		return []any{!value}
	}
	return nil
}
