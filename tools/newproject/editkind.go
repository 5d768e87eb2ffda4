// SPDX-License-Identifier: Apache-2.0

// What the files of a project say of an added kind, and what a kind of children needs.

package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// The lists of kinds in a project, to their ends.
var (
	listOfOwners = regexp.MustCompile(`var Owners = \[\]\*OwnerRow\{[^}]*`)
	listOfKinds  = regexp.MustCompile(`\treturn \[\]\*OwnerKind\{[^}]*`)
	listOfAPIs   = regexp.MustCompile(`(?s)var apisOf = .*?\n\t\},\n`)
)

// appendTo returns a change that appends a text to a list.
func appendTo(list *regexp.Regexp, text string) func(string) (string, error) {
	return func(in string) (string, error) {
		at := list.FindStringIndex(in)
		if at == nil {
			return "", fmt.Errorf("there is nothing like %s", list)
		}
		return in[:at[1]] + text + in[at[1]:], nil
	}
}

// editFiles adds the kind to files of the project.
func (w *kindWriter) editFiles() error {
	clients, err := w.fill("clients.go.txt")
	if err != nil {
		return err
	}
	// Each text goes where what a user adds for another child of the first kind does not, so that
	// git can merge both.
	if err := w.edit("clients.go", appendTo(listOfAPIs, w.spellGo(clients))); err != nil {
		return err
	}
	if err := w.edit("internal/plan/kinds.go", appendTo(listOfKinds, ", "+w.Kinds+"()")); err != nil {
		return err
	}
	if err := w.edit(w.first.text("test/footest/owners.go"), appendTo(listOfOwners, ", "+w.Kind+"Owner")); err != nil {
		return err
	}
	rules, err := w.fill("rules.yaml.txt")
	if err != nil {
		return err
	}
	if err := w.edit("artifacts/deploy/permissions/controller.yaml", insertBefore("# get: the controller reads a", w.text(rules))); err != nil {
		return err
	}
	rows, err := w.fill("manual.md.txt")
	if err != nil {
		return err
	}
	if err := w.edit("docs/operations.md", insertBefore("| `get`, `list`, `watch` | `"+w.first.Plural+"` |", w.text(rows))); err != nil {
		return err
	}
	return w.edit("artifacts/deploy/permissions/users.yaml", func(text string) (string, error) {
		for verbs, resources := range map[string]string{"[get]": "foos, foos/status", "[list, watch]": "foos", "[create, update, patch, delete, deletecollection]": "foos"} {
			rule := fmt.Sprintf("- apiGroups: [%s]\n  resources: [%s]\n  verbs: %s\n", w.Group, w.text(resources), verbs)
			var err error
			if text, err = insertAfter("  verbs: "+verbs+"\n", rule)(text); err != nil {
				return "", err
			}
		}
		return text, nil
	})
}

// edit changes a file of the project.
func (w *kindWriter) edit(name string, change func(text string) (string, error)) error {
	for i, file := range w.project.files {
		if file.path == name {
			text, err := change(string(file.data))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			w.project.files[i].data = []byte(text)
			return nil
		}
	}
	return fmt.Errorf("the project has no %s", name)
}

// insertBefore returns a change that inserts lines above the first one that begins with a
// text.
func insertBefore(line, text string) func(string) (string, error) {
	return func(in string) (string, error) {
		at := strings.Index(in, "\n"+line)
		if at < 0 {
			return "", fmt.Errorf("no line begins with %q", line)
		}
		return in[:at+1] + text + in[at+1:], nil
	}
}

// insertAfter returns a change that inserts lines below the first one that is this.
func insertAfter(line, text string) func(string) (string, error) {
	return func(in string) (string, error) {
		at := strings.Index(in, line)
		if at < 0 {
			return "", fmt.Errorf("no line is %q", line)
		}
		return in[:at+len(line)] + text + in[at+len(line):], nil
	}
}

// childType is a kind of Kubernetes' own, with its names in Go.
type childType struct {
	schema.GroupVersionKind
	// Package is that of the type, such as k8s.io/api/networking/v1, and Alias its name in
	// imports.
	Package, Alias string
	// GoGroup and GoVersion are those of the clients and informers: Networking, V1.
	GoGroup, GoVersion string
	// Plural is that of the clients and informers, and Resource that of URLs.
	Plural, Resource string
	// Field is the name of a field of the owner's spec in JSON, and Variable that of a
	// variable in Go.
	Field, Variable string
	// Counts reports whether the API server counts generations of the kind.
	Counts bool
	// Start is the code about the owned fields to begin with.
	Start ownedCode
}

// ownedCode is code about the fields that a Foo owns of a child, with the sample's names.
type ownedCode struct {
	Set, Keep             []string // of the row in internal/plan
	New                   string   // of the row in test/footest
	Clear, Differs, Drift []string
}

// starts are the owned fields that a new row begins with, where newproject knows some that
// the API server accepts.
var starts = map[string]ownedCode{
	"ConfigMap": {
		Set:     []string{"if configMap.Data == nil {", "\tconfigMap.Data = map[string]string{}", "}", `configMap.Data["owner"] = foo.Name`},
		Keep:    []string{`if owner, ok := found.Data["owner"]; ok {`, `	kept.Data = map[string]string{"owner": truncate(owner, maxKeptText)}`, "}"},
		New:     `&corev1.ConfigMap{Data: map[string]string{"owner": foo.Name}}`,
		Clear:   []string{`delete(configMap.Data, "owner")`},
		Differs: []string{`if got := configMap.Data["owner"]; got != foo.Name {`, `	return fmt.Sprintf("has the owner %q, want %q", got, foo.Name)`, "}"},
		Drift:   []string{`configMap.Data = with(configMap.Data, "owner", "drifted")`},
	},
	"Ingress": {
		Set: []string{"if ingress.Spec.DefaultBackend == nil {", "\tingress.Spec.DefaultBackend = &networkingv1.IngressBackend{}", "}",
			"ingress.Spec.DefaultBackend.Service = &networkingv1.IngressServiceBackend{",
			"\tName: foo.Name, Port: networkingv1.ServiceBackendPort{Number: 80},", "}"},
		Keep: []string{"if backend := found.Spec.DefaultBackend; backend != nil {",
			"\tkept.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: backend.Service}", "}"},
		New: `&networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{
				Name: foo.Name, Port: networkingv1.ServiceBackendPort{Number: 80},
			},
		}}}`,
		Clear: []string{"if backend := ingress.Spec.DefaultBackend; backend != nil && backend.Resource == nil {", "\tingress.Spec.DefaultBackend = nil", "} else if backend != nil {", "\tbackend.Service = nil", "}"},
		Differs: []string{"want := networkingv1.IngressServiceBackend{",
			"\tName: foo.Name, Port: networkingv1.ServiceBackendPort{Number: 80},", "}",
			"if backend := ingress.Spec.DefaultBackend; backend == nil || backend.Service == nil || *backend.Service != want {",
			`	return fmt.Sprintf("has the backend %v, want %v", backend, want)`, "}"},
		Drift: []string{"ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{",
			"\tName: \"drifted\", Port: networkingv1.ServiceBackendPort{Number: 81},", "}}"},
	},
}

// uncounted are kinds with a spec of which the API server counts no generations.
var uncounted = map[string]bool{"Service": true, "PersistentVolumeClaim": true, "ResourceQuota": true, "LimitRange": true, "Pod": true, "Lease": true}

// childOf finds the kind of Kubernetes' own that GROUP/VERSION/Kind names.
func childOf(name string) (childType, error) {
	refused := func(format string, args ...any) (childType, error) {
		return childType{}, fmt.Errorf("-child=%s: %s", name, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(name, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 {
		return refused("must be GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress, or v1/ConfigMap")
	}
	c := childType{GroupVersionKind: schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}}
	object, err := scheme.Scheme.New(c.GroupVersionKind)
	if err != nil {
		return refused("client-go does not know this kind: %v", err)
	}
	fields := reflect.TypeOf(object).Elem()
	c.Package = fields.PkgPath()
	group := path.Base(path.Dir(c.Package))
	c.Alias, c.GoGroup, c.GoVersion = group+c.Version, capitalized(group), capitalized(c.Version)
	plural, _ := meta.UnsafeGuessKindToResource(c.GroupVersionKind)
	c.Plural, c.Resource = pluralOf(c.Kind), plural.Resource
	c.Variable = camel(c.Kind)
	c.Field = c.Variable + "Name"
	_, hasSpec := fields.FieldByName("Spec")
	c.Counts = hasSpec && !uncounted[c.Kind]
	c.Start = starts[c.Kind]
	if c.Start.New == "" {
		c.Start.New = fmt.Sprintf("&%s.%s{}", c.Alias, c.Kind)
	}
	clients, ok := reflect.TypeFor[kubernetes.Interface]().MethodByName(c.GoGroup + c.GoVersion)
	if !ok {
		return refused("client-go has no client for this group and version")
	}
	client, ok := clients.Type.Out(0).MethodByName(c.Plural)
	switch {
	case !ok:
		return refused("client-go has no client for %s", c.Plural)
	case client.Type.NumIn() == 0:
		return refused("%s belong to no namespace: what owns an object must be in the same namespace", c.Plural)
	case c.Resource == "deployments":
		return refused("the first kind owns Deployments, and the controllers of both would need the same informer: choose another")
	}
	return c, nil
}

// check returns an error if a project can't get a kind beside those that it has.
func (k addedKind) check(project request) error {
	n := k.names(deriveNames(project))
	if err := errors.Join(checkKind(n), checkPlural(n), checkShort(n.Short)); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "-kind=", "-add-kind="))
	}
	if _, err := childOf(k.Child); err != nil {
		return err
	}
	for _, other := range append([]addedKind{{Kind: project.Kind, Plural: project.Plural, Short: project.Short}}, project.Kinds...) {
		o := other.names(deriveNames(project))
		switch {
		case strings.EqualFold(o.Kind, k.Kind):
			return fmt.Errorf("-add-kind=%s: the project has this kind already", k.Kind)
		case o.Plural == n.Plural:
			return fmt.Errorf("-add-kind=%s: its plural, %s, is that of %s: choose another with -plural", k.Kind, n.Plural, o.Kind)
		case k.Short != "" && k.Short == o.Short:
			return fmt.Errorf("-short=%s: is that of %s: choose another", k.Short, o.Kind)
		case k.Child == other.Child:
			return fmt.Errorf("-child=%s: %s own this already, and the controllers of both would need the same informer: choose another", k.Child, o.Kinds)
		}
	}
	return nil
}

// checkKind returns an error if the kind can't be added to the project in the folder.
func (u *updater) checkKind(ctx context.Context) error {
	if err := u.kind.check(u.from.request); err != nil {
		return err
	}
	n := u.kind.names(deriveNames(u.from.request))
	first := speller{names: deriveNames(u.from.request)}
	for _, path := range []string{"internal/plan/" + n.singular() + "_kind.go", first.text("test/footest/") + n.singular() + "_kind.go"} {
		if found, err := git(ctx, u.dir, "ls-files", path); err != nil || found != "" {
			return errors.Join(err, fmt.Errorf("-add-kind=%s: needs %s, which the project has already: choose another kind, or add a word", u.kind.Kind, path))
		}
	}
	return nil
}
