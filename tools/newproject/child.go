// SPDX-License-Identifier: Apache-2.0

// What the objects of an added kind own: a kind of Kubernetes' own.

package main

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

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
	// Installs is the folder of Kubernetes' package with the defaults of the group, unless
	// the tests import that already.
	Installs string
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
	if group != "core" && group != "apps" {
		c.Installs = group
	}
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
