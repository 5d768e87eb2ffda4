// SPDX-License-Identifier: Apache-2.0

// Functions on trees of YAML nodes.

package main

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// find returns the nodes at a path of keys and indexes, separated by spaces because keys
// contain dots. "*" matches each item.
func find(node *yaml.Node, path string) []*yaml.Node {
	found := []*yaml.Node{node}
	for step := range strings.FieldsSeq(path) {
		var next []*yaml.Node
		for _, at := range found {
			next = append(next, children(at, step)...)
		}
		found = next
	}
	return found
}

func children(node *yaml.Node, step string) []*yaml.Node {
	switch {
	case node.Kind == yaml.MappingNode:
		if i := indexOf(node, step); i >= 0 {
			return []*yaml.Node{node.Content[i+1]}
		}
	case node.Kind == yaml.SequenceNode && step == "*":
		return node.Content
	case node.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i : i+1]
		}
	}
	return nil
}

// indexOf returns the index of a key in a mapping, or -1.
func indexOf(mapping *yaml.Node, key string) int {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// remove removes a key from a mapping.
func remove(mapping *yaml.Node, key string) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}

// add adds a key at the end of a mapping.
func add(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, scalar(key), value)
}

// ensure returns the mapping at a key of a mapping, and adds it if there is none.
func ensure(mapping *yaml.Node, key string) *yaml.Node {
	if i := indexOf(mapping, key); i >= 0 {
		return mapping.Content[i+1]
	}
	made := &yaml.Node{Kind: yaml.MappingNode}
	add(mapping, key, made)
	return made
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value}
}

// split returns a path without its last step, and that step.
func split(path string) (parent, last string) {
	at := strings.LastIndex(path, " ")
	return path[:max(at, 0)], path[at+1:]
}

// walk calls visit for each mapping's values and each sequence's items below a node, with
// the path to them.
func walk(node *yaml.Node, path string, visit func(path string, node *yaml.Node)) {
	visit(path, node)
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			walk(child, path+" *", visit)
		case i%2 == 1:
			walk(child, path+" "+node.Content[i-1].Value, visit)
		}
	}
}
