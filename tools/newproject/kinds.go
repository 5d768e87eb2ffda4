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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// childType is one of Kubernetes' own kinds, with its names in Go.
type childType struct {
	schema.GroupVersionKind

	// Package is the type's package, such as k8s.io/api/networking/v1, and Alias its name in imports.
	Package, Alias string
	// GoGroup and GoVersion are their names in clients and informers: Networking, V1.
	GoGroup, GoVersion string
	// Plural is used in clients and informers, and Resource in URLs.
	Plural, Resource string
}

// childOf finds the Kubernetes kind with the name GROUP/VERSION/Kind.
func childOf(name string) (c childType, err error) {
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
	c.GroupVersionKind = schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	object, err := scheme.Scheme.New(c.GroupVersionKind)
	if err != nil {
		return refused("client-go does not know this kind: %v", err)
	}
	c.Package = reflect.TypeOf(object).Elem().PkgPath()
	group := path.Base(path.Dir(c.Package))
	c.Alias, c.GoGroup, c.GoVersion = group+c.Version, capitalized(group), capitalized(c.Version)
	plural, _ := meta.UnsafeGuessKindToResource(c.GroupVersionKind)
	c.Plural, c.Resource = pluralOf(c.Kind), plural.Resource
	clients, ok := reflect.TypeFor[kubernetes.Interface]().MethodByName(c.GoGroup + c.GoVersion)
	if !ok {
		return refused("client-go has no client for this group and version")
	}
	switch client, ok := clients.Type.Out(0).MethodByName(c.Plural); {
	case !ok:
		return refused("client-go has no client for %s", c.Plural)
	case client.Type.NumIn() == 0:
		return refused("%s are cluster-scoped: an owner and its objects must be in the same namespace", c.Plural)
	}
	return c, nil
}

// isDeployment reports whether the children run Pods, so that their owner has a number of them.
func (c childType) isDeployment() bool { return c.Kind == "Deployment" }

// addition is a text that an added kind needs in front of a line of a file.
type addition struct{ file, before, text string }

// addKind adds a kind to a project: its files, and its lines in others.
func addKind(ctx context.Context, root, dir string, add request, childName string, out io.Writer) error {
	p, err := open(ctx, root, "-into", dir)
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
func (p *project) additions(n names, child childType) []addition {
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
