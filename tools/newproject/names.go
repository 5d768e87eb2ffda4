// SPDX-License-Identifier: Apache-2.0

// The names of a project, their spellings, and the module's path.

package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// names holds the names that differ between projects. All other spellings are derived
// from these.
type names struct {
	Module  string // the Go module: github.com/acme/widgets/v2
	Program string // the program, its namespace, account and roles: widgets
	Group   string // the API group: my-team.acme.dev
	Package string // the group as a Go package: myteam
	GoGroup string // the group in Go identifiers: MyTeam
	Version string // the API version: v1beta1
	Kind    string // CacheCluster
	Kinds   string // the plural in Go identifiers: CacheClusters
	Plural  string // the plural in URLs: cacheclusters
	Short   string // the short name for kubectl, or empty
}

// sample holds the names of this project, which are replaced.
var sample = names{
	Module: "example.com/sample-controller", Program: "sample-controller",
	Group: "samplecontroller.k8s.io", Package: "samplecontroller", GoGroup: "Samplecontroller",
	Version: "v1alpha1", Kind: "Foo", Kinds: "Foos", Plural: "foos", Short: "fo",
}

// deriveNames derives all names of a request, valid or not.
func deriveNames(r request) names {
	label, _, _ := strings.Cut(r.Group, ".")
	n := names{
		Module: r.Module, Program: programOf(r.Module),
		Group: r.Group, Package: strings.ReplaceAll(label, "-", ""), GoGroup: pascal(label),
		Version: r.Version, Kind: r.Kind, Short: r.Short,
	}
	n.Kinds = pluralOf(r.Kind)
	n.Plural = strings.ToLower(n.Kinds)
	if r.Plural != "" && r.Plural != n.Plural {
		n.Kinds, n.Plural = casedLike(r.Plural, r.Kind), r.Plural
	}
	return n
}

// Singular returns the kind in lower case, as in kubectl commands and the names of
// generated files.
func (n names) Singular() string { return strings.ToLower(n.Kind) }

// modelPackage returns the module's name in OpenAPI definitions: the host's labels in
// reverse order, then the elements of the path, separated by dots. It replaces ~, which
// is an escape character in JSON pointers.
func (n names) modelPackage() string {
	host, path, _ := strings.Cut(n.Module, "/")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	if path != "" {
		labels = append(labels, strings.Split(path, "/")...)
	}
	return strings.ReplaceAll(strings.Join(labels, "."), "~", "-")
}

// modMajor matches a module's path with a major version.
var modMajor = regexp.MustCompile(`^(.+)/(v[2-9]|v[1-9][0-9]+)$`)

// major returns the major version of the module's path, or v0.
func (n names) major() string {
	if match := modMajor.FindStringSubmatch(n.Module); match != nil {
		return match[2]
	}
	return "v0"
}

// programOf returns the last element of a module's path, without the major version, as a
// valid name of a Kubernetes object.
func programOf(path string) string {
	prefix := modMajor.ReplaceAllString(path, "$1")
	last := strings.ToLower(prefix[strings.LastIndex(prefix, "/")+1:])
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, last), "-")
}

// pluralOf returns the same plural as the namers of k8s.io/gengo, because the generated
// clients have that plural.
func pluralOf(kind string) string {
	if len(kind) < 2 {
		return kind
	}
	stem, before, last := kind[:len(kind)-1], kind[len(kind)-2], kind[len(kind)-1]
	switch {
	case strings.IndexByte("sxz", last) >= 0, last == 'h' && (before == 'c' || before == 's'):
		return kind + "es"
	case last == 'y' && strings.IndexByte("bcdfghjklmnpqrstvwxyz", before) >= 0:
		return stem + "ies"
	case last == 'e' && before == 'f':
		return kind[:len(kind)-2] + "ves"
	case last == 'f':
		return stem + "ves"
	}
	return kind + "s"
}

// casedLike returns a lower-case plural with the capitals of the kind, as far as both
// have the same letters: httpmice of HTTPMouse is HTTPMice. hack/codegen.sh does the same
// for the generators.
func casedLike(plural, kind string) string {
	alike := 0
	for alike < len(plural) && alike < len(kind) && plural[alike] == strings.ToLower(kind)[alike] {
		alike++
	}
	return capitalized(kind[:alike] + plural[alike:])
}

// titled capitalizes the words of a name with dashes: my-team becomes My Team.
func titled(name string) string {
	words := strings.Split(name, "-")
	for i := range words {
		words[i] = capitalized(words[i])
	}
	return strings.Join(words, " ")
}

// pascal turns a name with dashes into a Go identifier: my-team becomes MyTeam.
func pascal(name string) string { return strings.ReplaceAll(titled(name), " ", "") }

func capitalized(s string) string {
	first := min(1, len(s))
	return strings.ToUpper(s[:first]) + s[first:]
}

// camel makes an identifier begin with a lower-case letter: HTTPRoute becomes httpRoute.
func camel(name string) string {
	capitals := len(name) - len(strings.TrimLeft(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	if capitals > 1 && capitals < len(name) && unicode.IsLower(rune(name[capitals])) {
		capitals-- // the last one begins a word
	}
	return strings.ToLower(name[:capitals]) + name[capitals:]
}
