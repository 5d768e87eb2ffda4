// SPDX-License-Identifier: Apache-2.0

// Added kinds: their files, and their entries in other files.

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// addedKind is a kind of a project other than its first one.
type addedKind struct {
	Kind   string `json:"kind"`
	Plural string `json:"plural,omitempty"`
	Short  string `json:"short,omitempty"`
	// Child is the kind of the objects that the kind owns, as GROUP/VERSION/Kind.
	Child string `json:"child"`
}

// names returns the names of a project whose first kind is this one.
func (k addedKind) names(n names) names {
	return deriveNames(request{Module: n.Module, Group: n.Group, Version: n.Version, Kind: k.Kind, Plural: k.Plural, Short: k.Short})
}

// check returns an error if the kind can't be added to a project.
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
			return fmt.Errorf("-add-kind=%s: its plural, %s, is already the plural of %s: choose another with -plural", k.Kind, n.Plural, o.Kind)
		case k.Short != "" && k.Short == o.Short:
			return fmt.Errorf("-short=%s: is already the short name of %s: choose another", k.Short, o.Kind)
		case k.Child == other.Child:
			return fmt.Errorf("-child=%s: %s already own this kind, and the controllers of both would need the same informer: choose another", k.Child, o.Kinds)
		}
	}
	return nil
}

// childType is one of Kubernetes' own kinds, with its names in Go.
type childType struct {
	schema.GroupVersionKind

	// Package is the type's package, such as k8s.io/api/networking/v1, and Alias its name in
	// imports.
	Package, Alias string
	// GoGroup and GoVersion are their names in clients and informers: Networking, V1.
	GoGroup, GoVersion string
	// Plural is used in clients and informers, and Resource in URLs.
	Plural, Resource string
	// Field is the JSON name of a field in the owner's spec, and Variable the name of a Go variable.
	Field, Variable string
	// Article is a or an.
	Article string
	// Counts reports whether the API server counts generations of the kind.
	Counts bool
}

// uncounted lists kinds that have a spec, but whose generations the API server does not count.
var uncounted = []string{"Service", "PersistentVolumeClaim", "ResourceQuota", "LimitRange", "Pod", "Lease"}

// childOf finds the Kubernetes kind with the name GROUP/VERSION/Kind.
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
	c.Variable, c.Article = camel(c.Kind), "a"+spelling{names: names{Kind: c.Kind}}.n()
	c.Field = c.Variable + "Name"
	_, hasSpec := fields.FieldByName("Spec")
	c.Counts = hasSpec && !slices.Contains(uncounted, c.Kind)
	clients, ok := reflect.TypeFor[kubernetes.Interface]().MethodByName(c.GoGroup + c.GoVersion)
	if !ok {
		return refused("client-go has no client for this group and version")
	}
	client, ok := clients.Type.Out(0).MethodByName(c.Plural)
	switch {
	case !ok:
		return refused("client-go has no client for %s", c.Plural)
	case client.Type.NumIn() == 0:
		return refused("%s are cluster-scoped: an owner and its objects must be in the same namespace", c.Plural)
	case c.Resource == "deployments":
		return refused("the first kind owns Deployments, and the controllers of both would need the same informer: choose another")
	}
	return c, nil
}

// The templates of an added kind, with the sample's names.
//
//go:embed kind/*.txt
var kindTemplates embed.FS

// filesOf returns the files of an added kind, with their templates.
func filesOf(first, k names) map[string]string {
	kind, api := k.Singular(), "pkg/apis/"+k.Package+"/"+k.Version+"/"
	return map[string]string{
		api + kind + "_types.go":                                 "types.go.txt",
		api + kind + "_owner.go":                                 "owner.go.txt",
		"pkg/reconcile/plan/" + kind + "_kind.go":                "plan.go.txt",
		"test/" + first.Singular() + "test/" + kind + "_kind.go": "harness.go.txt",
		"artifacts/examples/example-" + kind + ".yaml":           "example.yaml.txt",
	}
}

// edit is an addition to a file of the project: a template or a text before or after the first
// match of an expression. No edit goes where a user adds another child of the first kind, so
// that git can merge both.
type edit struct {
	file, match string
	before      bool
	text        string
}

// edits are the entries for an added kind in other files, with the sample's names.
var edits = []edit{
	{"clients.go", `(?s)var apisOf = .*?\n\t\},\n`, false, "clients.go.txt"},
	{"pkg/reconcile/plan/kinds.go", `\treturn \[\]\*OwnerKind\{[^}]*`, false, ", Foos()"},
	{"test/footest/owners.go", `var Owners = \[\]\*OwnerRow\{[^}]*`, false, ", FooOwner"},
	{"artifacts/deploy/permissions/controller.yaml", `(?m)^# get: the controller reads a`, true, "rules.yaml.txt"},
	{"docs/operations.md", `(?m)^\| .get., .list., .watch. \|`, true, "manual.md.txt"},
	{"artifacts/deploy/permissions/users.yaml", `  verbs: \[get\]\n`, false, rule("foos, foos/status", "get")},
	{"artifacts/deploy/permissions/users.yaml", `  verbs: \[list, watch\]\n`, false, rule("foos", "list, watch")},
	{"artifacts/deploy/permissions/users.yaml", `  verbs: \[create, .*\n`, false, rule("foos", "create, update, patch, delete, deletecollection")},
}

func rule(resources, verbs string) string {
	return fmt.Sprintf("- apiGroups: [samplecontroller.k8s.io]\n  resources: [%s]\n  verbs: [%s]\n", resources, verbs)
}

// addKind adds the files of a kind to a project, and its entries to other files.
func (b *blueprint) addKind(p *project, k addedKind) error {
	child, err := childOf(k.Child)
	if err != nil {
		return err
	}
	n := k.names(p.names)
	s := spelling{names: n, longAlias: p.longAlias}
	for name, from := range filesOf(p.names, n) {
		text, err := b.fillTemplate(from, p, child)
		if err != nil {
			return err
		}
		if p.has(name) {
			return fmt.Errorf("-add-kind=%s: the file %s already exists: choose another kind", k.Kind, name)
		}
		file, err := s.fill(treeFile{name, []byte(text), 0o644})
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
	}
	for _, e := range edits {
		text, err := b.fillTemplate(e.text, p, child)
		if err == nil {
			err = p.edit(e, s.filler().Replace(text))
		}
		if err != nil {
			return fmt.Errorf("-add-kind=%s: %w", k.Kind, err)
		}
	}
	return nil
}

// edit makes an addition.
func (p *project) edit(e edit, text string) error {
	name := strings.ReplaceAll(e.file, "foo", p.Singular())
	i := slices.IndexFunc(p.files, func(file treeFile) bool { return file.path == name })
	if i < 0 {
		return fmt.Errorf("the project has no %s", name)
	}
	data := p.files[i].data
	at := regexp.MustCompile(e.match).FindIndex(data)
	if at == nil {
		return fmt.Errorf("%s does not contain %s", name, e.match)
	}
	to := at[1]
	if e.before {
		to = at[0]
	}
	p.files[i].data = slices.Concat(data[:to], []byte(text), data[to:])
	return nil
}

// fillTemplate returns a text, or the template that it names, for a child, with slots for the
// names of the kind.
func (b *blueprint) fillTemplate(text string, p *project, child childType) (string, error) {
	data, err := kindTemplates.ReadFile("kind/" + text)
	switch {
	case err != nil:
		text = slotText(text)
	case strings.HasSuffix(text, ".go.txt"):
		text = slotGo(string(data), map[string]bool{})
	default:
		text = slotText(string(data))
	}
	t, err := template.New("").Delims("<<", ">>").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, struct {
		childType

		First    names  // of the first kind
		License  string // the line at the top of each Go file
		Decoding string // the methods that decode a status, copied from the first kind
	}{child, p.names, b.between("controller.go", "", "\n"), b.between("decode.go", "// UnmarshalJSON reads", "// ignoreTypes returns")})
	return out.String(), err
}

// between returns the part of a file from one text up to another.
func (b *blueprint) between(base, begin, end string) string {
	for _, file := range b.files {
		if path.Base(file.path) == base {
			if _, text, ok := strings.Cut(string(file.data), begin); ok {
				text, _, _ = strings.Cut(text, end)
				return begin + text
			}
		}
	}
	return ""
}

// checkKind returns an error if the kind can't be added to the project.
func (u *updater) checkKind(ctx context.Context, kind addedKind) error {
	if err := kind.check(u.from.request); err != nil {
		return err
	}
	first := deriveNames(u.from.request)
	for name := range filesOf(first, kind.names(first)) {
		if found, err := git(ctx, u.dir, "ls-files", name); err != nil || found != "" {
			return errors.Join(err, fmt.Errorf("-add-kind=%s: needs %s, which already exists in the project: choose another kind, or add a word", kind.Kind, name))
		}
	}
	return nil
}
