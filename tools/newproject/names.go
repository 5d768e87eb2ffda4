// SPDX-License-Identifier: Apache-2.0

// The names of a project, their spellings, and the module's path.

package main

import (
	"errors"
	"fmt"
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

// singular returns the kind in lower case, as in kubectl commands and the names of
// generated files.
func (n names) singular() string { return strings.ToLower(n.Kind) }

// shortest returns the shortest name of the resource for kubectl.
func (n names) shortest() string {
	if n.Short != "" {
		return n.Short
	}
	return n.singular()
}

// modelPackage returns the module's name in OpenAPI definitions: the host's labels in
// reverse order, then the elements of the path, separated by dots. It replaces ~, which
// is an escape character in JSON pointers.
func (n names) modelPackage() string {
	host, path, _ := strings.Cut(n.Module, "/")
	labels := strings.Split(host, ".")
	reversed := make([]string, 0, len(labels))
	for i := range labels {
		reversed = append(reversed, labels[len(labels)-1-i])
	}
	if path != "" {
		reversed = append(reversed, strings.Split(path, "/")...)
	}
	return strings.ReplaceAll(strings.Join(reversed, "."), "~", "-")
}

// programOf returns the last element of a module's path, without the major version, as a
// valid name of a Kubernetes object.
func programOf(path string) string {
	prefix, _ := splitMajor(path)
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

// pascal turns a name with dashes into a Go identifier: my-team becomes MyTeam.
func pascal(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		b.WriteString(capitalized(part))
	}
	return b.String()
}

func capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// camel makes an identifier begin with a lower-case letter: HTTPRoute becomes httpRoute.
func camel(name string) string {
	words := splitCamel(name)
	if len(words) == 0 {
		return name
	}
	return strings.ToLower(words[0]) + strings.Join(words[1:], "")
}

// splitCamel splits a run of letters and digits into words: HTTPRoute is HTTP and Route,
// V1alpha1 is one word.
func splitCamel(run string) []string {
	var words []string
	start := 0
	for i := 1; i < len(run); i++ {
		upper, before := isUpper(run[i]), isUpper(run[i-1])
		nextSmall := i+1 < len(run) && unicode.IsLower(rune(run[i+1]))
		if upper && (!before || nextSmall) {
			words = append(words, run[start:i])
			start = i
		}
	}
	if start < len(run) {
		words = append(words, run[start:])
	}
	return words
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

var (
	modHost    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*\.[a-z0-9.-]*[a-z0-9-]$`)
	modElement = regexp.MustCompile(`^([A-Za-z0-9_~-]|[A-Za-z0-9_~-][A-Za-z0-9._~-]*[A-Za-z0-9_~-])$`)
	// A last element that is a major version, and its valid values: v0 and v1 are never
	// written.
	modMajor     = regexp.MustCompile(`^(.+)/(v[0-9.]+)$`)
	majorVersion = regexp.MustCompile(`^v([2-9]|[1-9][0-9]+)$`)
	// The end of a short file name on Windows, as in "longna~1".
	shortFile = regexp.MustCompile(`~[0-9]+$`)
)

// windowsDevices are the names that no file can have on Windows, with any extension.
var windowsDevices = strings.Fields("con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// splitMajor splits a module's path before the element with its major version. major is
// empty if there is none.
func splitMajor(path string) (prefix, major string) {
	match := modMajor.FindStringSubmatch(path)
	if match == nil {
		return path, ""
	}
	return match[1], match[2]
}

// checkModulePath returns an error if the go command would not accept the path for a
// module that others can fetch (go.dev/ref/mod#go-mod-file-ident). It does not check the
// rules for gopkg.in.
func checkModulePath(path string) error {
	elements := strings.Split(path, "/")
	if !modHost.MatchString(elements[0]) {
		return fmt.Errorf("its first element, %q, is not a domain: lower-case letters, digits, dashes and at least one dot", elements[0])
	}
	for _, element := range elements {
		stem, _, _ := strings.Cut(element, ".")
		switch {
		case element == "":
			return errors.New("it has an empty element")
		case !modElement.MatchString(element):
			return fmt.Errorf("%q has something other than letters, digits, -, _, ~ and dots, or a dot at its beginning or end", element)
		case slices.Contains(windowsDevices, strings.ToLower(stem)):
			return fmt.Errorf("%q is the name of a device on Windows", element)
		case shortFile.MatchString(stem):
			return fmt.Errorf("%q could be the short name of another file on Windows", element)
		}
	}
	if _, major := splitMajor(path); major != "" && !majorVersion.MatchString(major) {
		return fmt.Errorf("%s is not a valid major version at the end of a path: use v2, v3 and so on", major)
	}
	return nil
}
