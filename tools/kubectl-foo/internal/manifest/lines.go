// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// segments matches the parts of a field's path, such as spec.items[2].name.
var segments = regexp.MustCompile(`[^.\[\]]+`)

// lineOf returns the line of a field in the document's file, or of the last field of its
// path that is there.
func (d document) lineOf(path string) int {
	var root yaml.Node
	if err := yaml.Unmarshal(d.data, &root); err != nil || len(root.Content) == 0 {
		return d.line
	}
	node, line := root.Content[0], root.Content[0].Line
	for _, segment := range segments.FindAllString(path, -1) {
		next, at := child(node, segment)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return d.line + line - 1
}

// child returns a field of a map, with the line of its name, or an element of a list.
func child(node *yaml.Node, segment string) (found *yaml.Node, line int) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == segment {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(segment); err == nil && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	case yaml.AliasNode:
		return child(node.Alias, segment)
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	return nil, 0
}
