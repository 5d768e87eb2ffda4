// SPDX-License-Identifier: Apache-2.0

// The edits by which values change the manifests, and the defaults of the values.

package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The types of defaults that are not in the manifests.
type (
	list    = []any
	mapping = map[string]any
)

// edit describes how a value changes its place.
type edit struct {
	// strict means that a manifest must have the place. Otherwise only the place's parent
	// must exist.
	strict bool
	// read returns the default from the node at the place.
	read func(*yaml.Node) (any, error)
	// apply changes the value of a key in a mapping.
	apply func(t *template, parent *yaml.Node, key, name string)
	// when is true if the value decides whether the objects exist.
	when bool
}

func decode(node *yaml.Node) (any, error) {
	var value any
	return value, node.Decode(&value)
}

var (
	scalarEdit = &edit{strict: true, read: decode, apply: func(t *template, parent *yaml.Node, key, name string) {
		t.set(children(parent, key)[0], ".Values."+name+" | quote")
	}}
	numberEdit = &edit{strict: true, read: decode, apply: func(t *template, parent *yaml.Node, key, name string) {
		t.set(children(parent, key)[0], "int .Values."+name)
	}}
	imageEdit = &edit{strict: true, read: func(node *yaml.Node) (any, error) {
		repository, _ := splitImage(node.Value)
		return repository, nil
	}, apply: func(t *template, parent *yaml.Node, key, _ string) {
		t.set(children(parent, key)[0], `include "`+program+`.image" . | quote`)
	}}
	// A block is omitted if the value is empty. It is moved to the end of its mapping,
	// because otherwise an item of a sequence might start without a key.
	blockEdit    = &edit{strict: true, read: decode, apply: applyBlock}
	optionalEdit = &edit{read: decode, apply: applyBlock}
	// Further entries of a mapping. The mapping need not exist.
	entriesEdit = &edit{apply: func(t *template, parent *yaml.Node, key, name string) {
		if there := children(parent, key); len(there) == 1 {
			t.addLines(there[0], "{{- with .Values."+name+" }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}")
			return
		}
		applyBlock(t, parent, key, name)
	}}
	argumentsEdit = &edit{strict: true, apply: func(t *template, parent *yaml.Node, key, name string) {
		t.addLines(children(parent, key)[0], "{{- range .Values."+name+" }}\n- {{ . | quote }}\n{{- end }}")
	}}
	// The address before the anchor.
	runbooksEdit = &edit{strict: true, read: func(node *yaml.Node) (any, error) {
		address, _, _ := strings.Cut(node.Value, "#")
		return address, nil
	}, apply: func(t *template, parent *yaml.Node, key, name string) {
		node := children(parent, key)[0]
		_, anchor, _ := strings.Cut(node.Value, "#")
		t.set(node, `printf "%s#`+anchor+`" .Values.`+name+` | quote`)
	}}
	// The label within expressions. hack/update-monitoring.sh replaces it in the same places.
	clusterEdit = &edit{strict: true, apply: func(t *template, parent *yaml.Node, key, name string) {
		node := children(parent, key)[0]
		node.Value = clusterLabel.ReplaceAllString(node.Value, "${1}"+t.inline("{{ .Values."+name+" }}")+"${2}")
	}}
	whenEdit = &edit{strict: true, when: true}
)

// clusterLabel matches the label in "by (cluster, job)", {cluster=~"..."},
// label_values(up, cluster), {{cluster}} and $labels.cluster, but not Grafana's $cluster.
var clusterLabel = regexp.MustCompile(`([(]|, |[{]|[.])cluster([,)]|=~|[}]| )`)

func applyBlock(t *template, parent *yaml.Node, key, name string) {
	remove(parent, key)
	t.addLines(parent, "{{- with .Values."+name+" }}\n"+key+":\n  {{- toYaml . | nindent DEEPER }}\n{{- end }}")
}

// argument adds a flag of the program if the value is set. as is the function, int or
// quote, that converts the value for the format.
func argument(format, as string) *edit {
	expression := `printf "` + format + `" (int .) | quote`
	if as == "quote" {
		expression = `printf "` + format + `" . | quote`
	}
	return &edit{strict: true, apply: func(t *template, parent *yaml.Node, key, name string) {
		t.addLines(children(parent, key)[0], "{{- with .Values."+name+" }}\n- {{ "+expression+" }}\n{{- end }}")
	}}
}

// splitImage returns an image's name and tag.
func splitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, ""
}

// readDefaults reads the values' defaults from the manifests.
func (c *chart) readDefaults() error {
	for _, v := range values {
		c.defaults[v.name] = v.initial
		if v.edit == nil || v.edit.when {
			continue
		}
		places, there := 0, 0
		for _, o := range c.objects() {
			if !v.of(o) {
				continue
			}
			for path := range strings.SplitSeq(v.path, "|") {
				parent, _ := split(path)
				places += len(find(o.node, parent))
				there += len(find(o.node, path))
				if err := c.readDefault(&v, find(o.node, path)); err != nil {
					return err
				}
			}
		}
		if places == 0 || (v.edit.strict && there == 0) {
			return fmt.Errorf("value %s: no manifest has %s %s", v.name, v.kind, v.path)
		}
	}
	return errors.Join(c.checkConditions(), c.readAppVersion())
}

// readDefault reads a value's default from a manifest. If several have it, the defaults
// must be equal.
func (c *chart) readDefault(v *value, nodes []*yaml.Node) error {
	if v.edit.read == nil {
		return nil
	}
	for _, node := range nodes {
		read, err := v.edit.read(node)
		if err != nil {
			return fmt.Errorf("value %s: %w", v.name, err)
		}
		if before := c.defaults[v.name]; !reflect.DeepEqual(before, v.initial) && !reflect.DeepEqual(before, read) {
			return fmt.Errorf("value %s: the manifests have both %v and %v", v.name, before, read)
		}
		c.defaults[v.name] = read
	}
	return nil
}

// readAppVersion reads the program's version: the tag of the image in the manifests.
func (c *chart) readAppVersion() error {
	for _, o := range c.everywhere {
		for _, image := range find(o.node, container+"image") {
			_, c.appVersion = splitImage(image.Value)
		}
	}
	if c.appVersion == "" {
		return errors.New("no container's image has a tag")
	}
	return nil
}

// checkConditions fails if a value switches off objects that no manifest has.
func (c *chart) checkConditions() error {
	for _, v := range values {
		if v.edit == nil || !v.edit.when {
			continue
		}
		matched := false
		for _, o := range c.objects() {
			matched = matched || v.of(o)
		}
		if !matched {
			return fmt.Errorf("value %s: no manifest is %s", v.name, v.kind)
		}
	}
	return nil
}

// apply applies the edits of all values to an object.
func (v *value) apply(t *template, o *object) {
	if v.edit == nil || v.edit.apply == nil || !v.of(o) {
		return
	}
	for path := range strings.SplitSeq(v.path, "|") {
		parent, key := split(path)
		for _, node := range find(o.node, parent) {
			if !v.edit.strict || len(children(node, key)) > 0 {
				v.edit.apply(t, node, key, v.name)
			}
		}
	}
}
