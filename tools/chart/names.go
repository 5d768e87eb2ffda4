// SPDX-License-Identifier: Apache-2.0

// Replacing the names and namespaces in the manifests by those of the release.

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// references are the places at which manifests name other objects, with the kind of the
// object. If the kind is empty, it is in the manifest beside the name. The manifests need
// not have every place, but they may have names only in these places: see checkNames.
var references = []struct{ in, path, kind string }{
	{"RoleBinding", "roleRef name", ""},
	{"ClusterRoleBinding", "roleRef name", ""},
	{"RoleBinding", "subjects * name", ""},
	{"ClusterRoleBinding", "subjects * name", ""},
	{"Role", "rules * resourceNames *", "Lease"},
	{"Deployment", container + "args 5", "Lease"},
	{"Deployment", "spec template spec serviceAccountName", "ServiceAccount"},
	{"Secret", "metadata annotations kubernetes.io/service-account.name", "ServiceAccount"},
	{"ServiceMonitor", "spec endpoints * authorization credentials name", "Secret"},
	{"ValidatingAdmissionPolicyBinding", "spec policyName", "ValidatingAdmissionPolicy"},
	{"ValidatingAdmissionPolicyBinding", "spec paramRef name", "ServiceAccount"},
	{"FlowSchema", "spec rules * subjects * serviceAccount name", "ServiceAccount"},
}

// constants are the places where the program's name is not an object's name, and stays.
var constants = []string{
	" app.kubernetes.io/name", // the alerts select by this job
	"Deployment spec template spec containers * name",
	"Deployment spec template spec containers * env * valueFrom resourceFieldRef containerName",
	"PrometheusRule spec groups * name",
	"PrometheusRule spec groups * rules * labels job",
	// Names of the API, which are equal to the program's name if the program is called
	// "foos".
	"CustomResourceDefinition spec names plural",
	"CustomResourceDefinition spec names singular",
	"CustomResourceDefinition spec names shortNames *",
	" rules * resources *",
}

var (
	objectName = regexp.MustCompile(`^` + program + `((?:-[a-z0-9]+)*)$`)
	// accountInCEL is the end of the service account's user name in an expression.
	accountInCEL = regexp.MustCompile(`:` + program + `'`)
)

// rename replaces an object's names and namespaces by those of the release.
func (t *template) rename(o *object, watched string) error {
	if o.kind != "CustomResourceDefinition" {
		name := find(o.node, "metadata name")[0]
		if err := t.refer(name, o.kind); err != nil {
			return err
		}
	}
	for _, reference := range references {
		if reference.in != o.kind {
			continue
		}
		parent, last := split(reference.path)
		for _, holder := range find(o.node, parent) {
			kind := reference.kind
			if kind == "" {
				kind = find(holder, "kind")[0].Value
			}
			for _, name := range find(holder, last) {
				if err := t.refer(name, kind); err != nil {
					return fmt.Errorf("%s: %w", reference.path, err)
				}
			}
		}
	}
	return t.place(o, watched)
}

const (
	fullName    = `include "` + program + `.fullname" .`
	accountName = `include "` + program + `.serviceAccountName" .`
	ofNamespace = `include "` + program + `.ofNamespace" .`
)

// refer replaces a scalar by the name of an object of the release.
func (t *template) refer(name *yaml.Node, kind string) error {
	match := objectName.FindStringSubmatch(name.Value)
	if match == nil {
		return fmt.Errorf("%s %s does not start with %s", kind, name.Value, program)
	}
	switch suffix := match[1]; {
	case kind == "ServiceAccount" && suffix == "":
		t.set(name, accountName+" | quote")
	case !namespaced[kind] && kind != "Lease":
		*name = *scalar(t.inline(`"{{ ` + fullName + ` }}` + suffix + `{{ ` + ofNamespace + ` }}"`))
	default:
		*name = *scalar(t.inline(`"{{ ` + fullName + ` }}` + suffix + `"`))
	}
	return nil
}

// place replaces the controller's namespace by the release's, and the watched namespace
// by the value watchNamespace.
func (t *template) place(o *object, watched string) error {
	if !namespaced[o.kind] {
		remove(find(o.node, "metadata")[0], "namespace")
	}
	var err error
	walk(o.node, o.kind, func(path string, node *yaml.Node) {
		switch {
		case node.Kind != yaml.ScalarNode || !strings.HasSuffix(path, " namespace") && !strings.HasSuffix(path, " resourceRules * namespaces *"):
		case node.Value == program:
			t.set(node, ".Release.Namespace | quote")
		case node.Value == watched:
			t.set(node, ".Values.watchNamespace | quote")
		default:
			err = fmt.Errorf("%s is %s, which is neither the controller's namespace nor the watched one", path, node.Value)
		}
	})
	return err
}

// checkNames fails if the program's name remains in a place that is neither in references
// nor in constants.
func checkNames(o *object) error {
	var err error
	walk(o.node, o.kind, func(path string, node *yaml.Node) {
		if node.Kind != yaml.ScalarNode || (!objectName.MatchString(node.Value) && !accountInCEL.MatchString(node.Value)) {
			return
		}
		for _, constant := range constants {
			if strings.HasSuffix(path, constant) {
				return
			}
		}
		err = fmt.Errorf("%s is %s: add the place to references or constants", path, node.Value)
	})
	return err
}

// namesFile returns the helper templates that the others share. A Service's name may have
// 63 characters, so the length of the release's name is limited by the longest suffix of
// a Service.
func (c *chart) namesFile() (string, error) {
	longest := 0
	for _, o := range c.everywhere {
		if o.kind == "Service" {
			longest = max(longest, len(o.name)-len(program))
		}
	}
	return generatedTemplate + strings.NewReplacer("PROGRAM", program, "LENGTH", strconv.Itoa(63-longest)).Replace(sharedTemplates), nil
}

const sharedTemplates = `
{{- define "PROGRAM.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $name = .Values.fullnameOverride | default $name | replace "." "-" | trunc LENGTH | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "%s can't be the name of a Service, which begins with a letter: set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- /* The name of a cluster-scoped object ends with a dot and the release's namespace. No other name here has a dot. */ -}}
{{- define "PROGRAM.ofNamespace" -}}
{{- if ne (include "PROGRAM.fullname" .) .Release.Namespace }}.{{ .Release.Namespace }}{{ end -}}
{{- end -}}

{{- define "PROGRAM.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "PROGRAM.fullname" .) -}}
{{- end -}}

{{- define "PROGRAM.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "PROGRAM.image" -}}
{{- .Values.image.repository -}}
{{- if or .Values.image.tag (not .Values.image.digest) }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}
`
