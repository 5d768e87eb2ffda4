/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
