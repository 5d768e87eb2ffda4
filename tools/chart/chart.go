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

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chart is what is made of the manifests.
type chart struct {
	*manifests
	// defaults are those of the values, by name.
	defaults map[string]any
	// appVersion is the tag of the image in the manifests.
	appVersion string
	// kubernetes is the oldest release that takes the manifests.
	kubernetes string
}

const generatedTemplate = "{{- /* Made by tools/chart of what kustomize renders: change artifacts/deploy, then make chart. */ -}}\n"

// objects are all that there are, those of both variants twice.
func (c *chart) objects() []*object {
	return slices.Concat(c.everywhere, c.single, c.monitoring)
}

// of reports whether a value is about an object.
func (v *value) of(o *object) bool {
	whole := regexp.MustCompile(`^(?:` + v.kind + `)$`)
	return whole.MatchString(o.kind) || whole.MatchString(o.id())
}

// templates returns the files of the templates. What the variants have in common is written once.
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
			return nil, fmt.Errorf("%s: another template is called %s, too", o.id(), name)
		}
		files[name] = generatedTemplate + wrap(texts[o], append(condition, conditionsOf(o)...))
	}
	return files, nil
}

// variantOf returns the condition for an object that is in one of the variants alone, and reports whether it is that of
// the other variant again.
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
		return nil, false, fmt.Errorf("%s differs between %s and %s: a value has to say how", o.id(), deployFolder, namespacedFolder)
	}
	return nil, o == c.single[inOne], nil
}

// fileOf is the file of an object's template.
func fileOf(o *object) string {
	if o.kind == "CustomResourceDefinition" {
		return "templates/crd-" + o.name + ".yaml"
	}
	return "templates/" + strings.ToLower(o.kind) + strings.TrimPrefix(o.name, program) + ".yaml"
}

// conditionsOf are the values that an object depends on.
func conditionsOf(o *object) []string {
	var conditions []string
	for _, v := range values {
		if v.edit != nil && v.edit.when && v.of(o) {
			conditions = append(conditions, ".Values."+v.name)
		}
	}
	return conditions
}

// wrap makes a text depend on conditions.
func wrap(text string, conditions []string) string {
	switch len(conditions) {
	case 0:
		return text
	case 1:
		return "{{- if " + conditions[0] + " }}\n" + text + "{{- end }}\n"
	}
	return "{{- if and (" + strings.Join(conditions, ") (") + ") }}\n" + text + "{{- end }}\n"
}

// template makes a manifest a template.
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
		// Without it an uninstall would delete all Foos, and so would crds.install=false.
		annotations := ensure(find(o.node, "metadata")[0], "annotations")
		remove(annotations, "helm.sh/resource-policy")
		add(annotations, "helm.sh/resource-policy", scalar("keep"))
	}
	return t.text()
}

// nameLease gives each release of a namespace a Lease of its own.
func (t *template) nameLease(o *object) error {
	args := find(o.node, "spec template spec containers 0 args")[0]
	if !slices.ContainsFunc(args.Content, func(arg *yaml.Node) bool { return arg.Value == "-leader-elect" }) {
		return fmt.Errorf("the container has no flag -leader-elect")
	}
	t.addLines(args, `{{- if ne (`+fullName+`) "`+program+`" }}`+"\n"+
		`- -leader-elect-resource-name={{ `+fullName+` }}`+"\n{{- end }}")
	return nil
}

// label adds Helm's labels to an object, and the release to what else has the label with the program's name: the
// Pods, and what selects them.
func (t *template) label(o *object) {
	own := ensure(find(o.node, "metadata")[0], "labels")
	walk(o.node, o.kind, func(_ string, node *yaml.Node) {
		if node.Kind == yaml.MappingNode && node != own && indexOf(node, "app.kubernetes.io/name") >= 0 {
			add(node, "app.kubernetes.io/instance", scalar(t.inline("{{ .Release.Name | quote }}")))
		}
	})
	t.addLines(own, `{{- include "`+program+`.labels" . | nindent INDENT }}`)
}
