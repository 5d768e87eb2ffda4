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

// The chart's templates, made from the manifests.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chart holds the manifests and what is read from them for the chart.
type chart struct {
	*manifests
	// defaults are the defaults of the values, by name.
	defaults map[string]any
	// appVersion is the tag of the image in the manifests.
	appVersion string
	// kubernetes is the oldest supported release.
	kubernetes string
}

const generatedTemplate = "{{- /* Made by tools/chart of what kustomize renders: change artifacts/deploy, then make chart. */ -}}\n"

// objects returns all objects. Those of both variants are in it twice.
func (c *chart) objects() []*object {
	return slices.Concat(c.everywhere, c.single, c.monitoring)
}

// of reports whether a value has a place in an object.
func (v *value) of(o *object) bool {
	whole := regexp.MustCompile(`^(?:` + v.kind + `)$`)
	return whole.MatchString(o.kind) || whole.MatchString(o.id())
}

// templates returns the files of the templates. An object of both variants has one
// template.
func (c *chart) templates() (map[string]string, error) {
	texts := map[*object]string{}
	for _, o := range c.objects() {
		var err error
		if texts[o], err = c.template(o); err != nil {
			return nil, fmt.Errorf("%s: %w", o.id(), err)
		}
	}
	files := map[string]string{}
	for _, o := range c.objects() {
		condition, again, err := c.variantOf(o, texts)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		name := fileOf(o)
		if _, taken := files[name]; taken {
			return nil, fmt.Errorf("%s: another template has the file name %s as well", o.id(), name)
		}
		files[name] = generatedTemplate + wrap(texts[o], append(condition, conditionsOf(o)...))
	}
	return files, nil
}

// variantOf returns the condition for an object that only one variant has, and reports
// whether the object was already there in the other variant.
func (c *chart) variantOf(o *object, texts map[*object]string) (condition []string, again bool, err error) {
	same := func(other *object) bool { return other.id() == o.id() }
	inOne, inAll := slices.IndexFunc(c.single, same), slices.IndexFunc(c.everywhere, same)
	switch {
	case slices.Contains(c.monitoring, o):
		return nil, false, nil
	case inOne < 0:
		return []string{"not .Values.watchNamespace"}, false, nil
	case inAll < 0:
		return []string{".Values.watchNamespace"}, false, nil
	case texts[c.single[inOne]] != texts[c.everywhere[inAll]]:
		return nil, false, fmt.Errorf("%s differs between %s and %s: no value explains the difference", o.id(), deployFolder, namespacedFolder)
	}
	return nil, o == c.single[inOne], nil
}

// fileOf returns the file name of an object's template.
func fileOf(o *object) string {
	if o.kind == "CustomResourceDefinition" {
		return "templates/crd-" + o.name + ".yaml"
	}
	return "templates/" + strings.ToLower(o.kind) + strings.TrimPrefix(o.name, program) + ".yaml"
}

// conditionsOf returns the conditions of the values that an object depends on.
func conditionsOf(o *object) []string {
	var conditions []string
	for _, v := range values {
		if v.edit != nil && v.edit.when && v.of(o) {
			conditions = append(conditions, ".Values."+v.name)
		}
	}
	return conditions
}

// wrap puts a text into conditions.
func wrap(text string, conditions []string) string {
	switch len(conditions) {
	case 0:
		return text
	case 1:
		return "{{- if " + conditions[0] + " }}\n" + text + "{{- end }}\n"
	}
	return "{{- if and (" + strings.Join(conditions, ") (") + ") }}\n" + text + "{{- end }}\n"
}

// template turns a manifest into a template.
func (c *chart) template(o *object) (string, error) {
	t := &template{node: o.node}
	for i := range values {
		values[i].apply(t, o)
	}
	if o.kind == "Deployment" {
		if err := t.nameLease(o); err != nil {
			return "", err
		}
	}
	if err := t.rename(o, c.watched); err != nil {
		return "", err
	}
	if err := checkNames(o); err != nil {
		return "", err
	}
	t.label(o)
	if o.kind == "CustomResourceDefinition" {
		// Without this annotation, an uninstall or crds.install=false would delete all
		// Foos.
		annotations := ensure(find(o.node, "metadata")[0], "annotations")
		remove(annotations, "helm.sh/resource-policy")
		add(annotations, "helm.sh/resource-policy", scalar("keep"))
	}
	return t.text()
}

// nameLease gives each release in a namespace its own Lease.
func (t *template) nameLease(o *object) error {
	args := find(o.node, "spec template spec containers 0 args")[0]
	if !slices.ContainsFunc(args.Content, func(arg *yaml.Node) bool { return arg.Value == "-leader-elect" }) {
		return fmt.Errorf("the container has no flag -leader-elect")
	}
	t.addLines(args, `{{- if ne (`+fullName+`) "`+program+`" }}`+"\n"+
		`- -leader-elect-resource-name={{ `+fullName+` }}`+"\n{{- end }}")
	return nil
}

// label adds Helm's labels to an object, and the release's label wherever the program's
// name is a label: on the Pods, and in selectors.
func (t *template) label(o *object) {
	own := ensure(find(o.node, "metadata")[0], "labels")
	walk(o.node, o.kind, func(_ string, node *yaml.Node) {
		if node.Kind == yaml.MappingNode && node != own && indexOf(node, "app.kubernetes.io/name") >= 0 {
			add(node, "app.kubernetes.io/instance", scalar(t.inline("{{ .Release.Name | quote }}")))
		}
	})
	t.addLines(own, `{{- include "`+program+`.labels" . | nindent INDENT }}`)
}
