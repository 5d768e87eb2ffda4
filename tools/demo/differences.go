// SPDX-License-Identifier: Apache-2.0

// The differences between two specs.

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// leaf is a JSON value that is neither an object nor an array, with the name of its
// field.
type leaf struct {
	name  string
	value any
}

// differences lists the fields that differ, in the form of "replicas 1 -> 3".
func differences(before, after any) []string {
	was, is := map[string]leaf{}, map[string]leaf{}
	addLeaves(was, "", leaf{value: before})
	addLeaves(is, "", leaf{value: after})
	all := maps.Clone(was)
	maps.Copy(all, is)
	var found []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if was[path] != is[path] {
			found = append(found, fmt.Sprintf("%s %s -> %s", all[path].name, valueAt(was, path), valueAt(is, path)))
		}
	}
	return found
}

// addLeaves adds the leaves of a value by path.
func addLeaves(leaves map[string]leaf, path string, of leaf) {
	switch value := of.value.(type) {
	case map[string]any:
		for name, field := range value {
			addLeaves(leaves, path+"."+name, leaf{name, field})
		}
	case []any:
		for i, element := range value {
			index := fmt.Sprintf("[%d]", i)
			addLeaves(leaves, path+index, leaf{of.name + index, element})
		}
	default:
		leaves[path] = of
	}
}

func valueAt(leaves map[string]leaf, path string) string {
	l, ok := leaves[path]
	if !ok {
		return "unset"
	}
	if text, ok := l.value.(string); ok {
		return text
	}
	text, _ := json.Marshal(l.value) // It was decoded from JSON.
	return string(text)
}

// firstOf joins the first texts and the number of the others.
func firstOf(texts []string) string {
	const most = 3
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
