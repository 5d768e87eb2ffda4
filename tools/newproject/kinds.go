// SPDX-License-Identifier: Apache-2.0

// Added kinds.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtInKind is one of Kubernetes' own kinds, with its names in Go.
type builtInKind struct {
	schema.GroupVersionKind

	// Package is the type's package, such as k8s.io/api/networking/v1, and Alias its name in imports.
	Package, Alias string
	// GoGroup and GoVersion are their names in clients and informers: Networking, V1.
	GoGroup, GoVersion string
	// Plural is used in clients and informers, and Resource in URLs.
	Plural, Resource string
	// ClusterScoped is true if its objects have no namespace.
	ClusterScoped bool
}

// findKind finds the Kubernetes kind with the name GROUP/VERSION/Kind, the value of a flag. A controller can read and
// write its objects.
func findKind(flag, name string) (k builtInKind, err error) {
	refused := func(format string, args ...any) (builtInKind, error) {
		return builtInKind{}, fmt.Errorf("%s=%s: %s", flag, name, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(name, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 {
		return refused("must be GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress, or v1/ConfigMap")
	}
	k.GroupVersionKind = schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	object, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil {
		return refused("client-go does not know this kind: %v", err)
	}
	k.Package = reflect.TypeOf(object).Elem().PkgPath()
	group := path.Base(path.Dir(k.Package))
	k.Alias, k.GoGroup, k.GoVersion = group+k.Version, capitalized(group), capitalized(k.Version)
	plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	k.Plural, k.Resource = pluralOf(k.Kind), plural.Resource
	if k.Resource == strings.ToLower(k.Kind) { // Endpoints
		k.Plural = k.Kind
	}
	client := method(reflect.TypeFor[kubernetes.Interface](), k.GoGroup+k.GoVersion, k.Plural)
	informer := method(reflect.TypeFor[informers.SharedInformerFactory](), k.GoGroup, k.GoVersion, k.Plural)
	if client == nil || informer == nil {
		return refused("client-go has no client and informer for it")
	}
	for _, verb := range []string{"Get", "List", "Watch", "Create", "Patch", "Delete"} {
		if _, ok := client.Out(0).MethodByName(verb); !ok {
			return refused("it can't be watched and changed: the client of client-go has no %s", verb)
		}
	}
	k.ClusterScoped = client.NumIn() == 0
	return k, nil
}

// method returns the type of the last of the methods that are called on the result of each other, or nil.
func method(of reflect.Type, names ...string) reflect.Type {
	for i, name := range names {
		method, ok := of.MethodByName(name)
		if !ok {
			return nil
		}
		if of = method.Type; i < len(names)-1 {
			of = of.Out(0)
		}
	}
	return of
}

// childOf finds the Kubernetes kind of the objects that a new kind owns.
func childOf(name string) (builtInKind, error) {
	k, err := findKind("-child", name)
	if err == nil && k.ClusterScoped {
		err = fmt.Errorf("-child=%s: %s are cluster-scoped: choose a kind whose objects are in a namespace", name, k.Plural)
	}
	return k, err
}

// isDeployment reports whether the children run Pods, so that their owner has a number of them.
func (k builtInKind) isDeployment() bool { return k.Kind == "Deployment" }

// addition is a text that an added kind needs in front of a line of a file.
type addition struct{ file, before, text string }

// addKind adds a kind to a project: its files, and its lines in others.
func addKind(ctx context.Context, root, dir string, add request, childName string, out io.Writer) error {
	p, err := open(ctx, root, "-into", dir)
	if err == nil && p.Of != nil {
		err = fmt.Errorf("-into=%s: is for %s of Kubernetes, and has no API for kinds of its own: generate another project", dir, p.Kinds)
	}
	if err != nil {
		return refusal{err}
	}
	add.Module, add.Group, add.Version = p.Module, p.Group, p.Version
	n := deriveNames(add)
	child, err := childOf(childName)
	if err := errors.Join(checkKind(n), checkPlural(n), checkShort(n.Short), err, p.checkKind(n)); err != nil {
		return refusal{errors.New(strings.ReplaceAll(err.Error(), "-kind=", "-add-kind="))}
	}
	p.names = n
	err = steps(ctx, out,
		step{"Adding the kind " + n.Kind, func(context.Context) error {
			err := p.fill(child, false)
			for _, addition := range p.additions(n, child) {
				err = errors.Join(err, p.add(addition))
			}
			return err
		}},
		step{"Generating clients and the CustomResourceDefinition", p.command("hack/update-codegen.sh")},
		step{"Compiling", p.compile})
	if err != nil {
		return p.undo(err)
	}
	fmt.Fprintf(out, "%s has the kind %s, uncommitted. Declare what it owns in internal/kinds/%s.go.\n", p.dir, n.Kind, n.Singular())
	return nil
}

// checkKind returns an error if a project has a kind already.
func (p *project) checkKind(n names) error {
	file := filepath.Join(p.dir, "internal/kinds", n.Singular()+".go")
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("-kind=%s: %s already exists: choose another kind", n.Kind, file)
	}
	return nil
}

// additions returns the lines of an added kind in files of the project.
func (p *project) additions(n names, child builtInKind) []addition {
	rule := func(group, resources, verbs string) string {
		return fmt.Sprintf("- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]\n", group, resources, verbs)
	}
	const controller, users = "artifacts/deploy/permissions/controller.yaml", "artifacts/deploy/permissions/users.yaml"
	const afterRules = "- apiGroups: [\"\"]\n  resources: [events]"
	read, write := n.Plural+", "+n.Plural+"/status", rule(n.Group, n.Plural, "create, update, patch, delete, deletecollection")
	if child.isDeployment() {
		read, write = read+", "+n.Plural+"/scale", write+rule(n.Group, n.Plural+"/scale", "update, patch")
	}
	return []addition{
		{"internal/kinds/kinds.go", "\t\t// newproject -add-kind adds lines here.", "\t\tdeclare" + n.Kind + "(clients, options),\n"},
		{controller, afterRules, rule(n.Group, n.Plural, "get, list, watch") + rule(n.Group, n.Plural+"/status", "update") + rule(n.Group, n.Plural+"/finalizers", "update")},
		{controller, afterRules, rule(cmp.Or(child.Group, `""`), child.Resource, "get, list, watch, create, patch, delete")},
		{users, "---", rule(n.Group, read, "get, list, watch")},
		{users, rule(n.Group, deriveNames(p.request).Plural+"/scale", "update, patch"), write},
	}
}

// add makes an addition, if the file does not have it: another kind may have needed the same.
func (p *project) add(a addition) error {
	text, err := os.ReadFile(filepath.Join(p.dir, a.file))
	before, after, ok := strings.Cut(string(text), a.before)
	if strings.Contains(string(text), a.text) {
		return nil
	}
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("%s has no line %q, before which the new lines belong", a.file, strings.TrimSpace(a.before)))
	}
	return p.put(a.file, []byte(before+a.text+a.before+after))
}
