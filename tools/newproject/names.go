// SPDX-License-Identifier: Apache-2.0

// The names of a project, and the rules for them and for the directory, which are checked before
// anything is written.

package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	openapi "k8s.io/kube-openapi/pkg/util"
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
	// Of is the kind of the project if that is one of Kubernetes' own. Group is then that of annotations.
	Of *builtInKind
}

// deriveNames derives all names of a request, valid or not.
func deriveNames(r request) names {
	label, _, _ := strings.Cut(r.Group, ".")
	n := names{
		Module: r.Module, Program: programOf(r.Module),
		Group: r.Group, Package: strings.ReplaceAll(label, "-", ""), GoGroup: pascal(label),
		Version: r.Version, Kind: r.Kind, Short: r.Short,
	}
	if of, err := findKind("-kind-of", r.KindOf); err == nil {
		n.Of, n.Kind, n.Kinds, n.Plural, n.Version = &of, of.Kind, of.Plural, of.Resource, of.Version
		return n
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

// resource returns the plural with the API group.
func (n names) resource() string {
	if n.Of != nil {
		return schema.GroupResource{Group: n.Of.Group, Resource: n.Plural}.String()
	}
	return n.Plural + "." + n.Group
}

// ModelPackage returns the only name of the API's package in OpenAPI definitions by which the generators
// find it.
func (n names) ModelPackage() string {
	return openapi.ToRESTFriendlyName(n.Module + "/pkg/apis/" + n.Package + "/" + n.Version)
}

// GoVersion returns the version in Go identifiers: V1beta1.
func (n names) GoVersion() string { return capitalized(n.Version) }

// modMajor matches a module's path with a major version.
var modMajor = regexp.MustCompile(`^(.+)/(v[2-9]|v[1-9][0-9]+)$`)

// programOf returns the last element of a module's path, without the major version, as a
// valid name of a Kubernetes object.
func programOf(path string) string {
	prefix := modMajor.ReplaceAllString(path, "$1")
	last := strings.ToLower(prefix[strings.LastIndex(prefix, "/")+1:])
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(last, "-"), "-")
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
// have the same letters: httpmice of HTTPMouse is HTTPMice. hack/codegen does the same for
// the generators.
func casedLike(plural, kind string) string {
	alike := 0
	for alike < len(plural) && alike < len(kind) && plural[alike] == strings.ToLower(kind)[alike] {
		alike++
	}
	return capitalized(kind[:alike] + plural[alike:])
}

// pascal turns a name with dashes into a Go identifier: my-team becomes MyTeam.
func pascal(name string) string {
	words := strings.Split(name, "-")
	for i := range words {
		words[i] = capitalized(words[i])
	}
	return strings.Join(words, "")
}

func capitalized(s string) string {
	first := min(1, len(s))
	return strings.ToUpper(s[:first]) + s[first:]
}

// maxLabel is the greatest length of a label of a domain name, and of the value of a
// Kubernetes label.
const maxLabel = 63

// maxDomain is the greatest length of a domain name.
const maxDomain = 253

// maxProgram leaves room for suffixes of the program's name in names of at most 63
// characters, such as the host name of the metrics.
const maxProgram = 50

// maxKind leaves room for the prefix example- in the value of a label.
const maxKind = maxLabel - len("example-")

var (
	goKind     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	apiVersion = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	modulePath = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*\.[a-z0-9.-]*[a-z0-9-](/[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)*$`)
	// majorVersion matches a path that ends as if it had a major version.
	majorVersion = regexp.MustCompile(`/v[0-9]+$`)
	lowerWord    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// checkNames returns an error for each rule that a request breaks, as far as that can be
// checked without the sources.
func checkNames(r request) error {
	n := deriveNames(r)
	if r.KindOf != "" {
		_, err := findKind("-kind-of", r.KindOf)
		return errors.Join(checkModule(n), checkGroup(n), err)
	}
	return errors.Join(checkModule(n), checkGroup(n), checkVersion(n.Version), checkKind(n), checkPlural(n), checkShort(n.Short))
}

func checkModule(n names) error {
	switch {
	case !modulePath.MatchString(n.Module) || majorVersion.MatchString(n.Module) && !modMajor.MatchString(n.Module):
		return fmt.Errorf("-module=%s: must be a path that go get accepts, with a domain, such as github.com/acme/widgets or github.com/acme/widgets/v2", n.Module)
	case n.Module == library || strings.HasPrefix(n.Module, library+"/"):
		return fmt.Errorf("-module=%s: is the library's: choose the import path of the new project", n.Module)
	case len(validation.IsDNS1035Label(n.Program)) > 0 || len(n.Program) > maxProgram:
		return fmt.Errorf("-module=%s: its last element, %q, becomes the name of the program, its namespace and its account: it must begin with a letter, end with a letter or digit, and have at most %d letters, digits and dashes", n.Module, n.Program, maxProgram)
	case slices.Contains([]string{"artifacts", "bin", "devcluster", "hack", "internal", "pkg"}, n.Program):
		return fmt.Errorf("-module=%s: its last element becomes the name of the program, and must not be %s, which the project has already", n.Module, n.Program)
	case n.Program == "default" || strings.HasPrefix(n.Program, "kube-"):
		return fmt.Errorf("-module=%s: its last element, %q, becomes the name of a namespace: it must not be reserved by Kubernetes (default, kube-...)", n.Module, n.Program)
	}
	return nil
}

func checkGroup(n names) error {
	problems := validation.IsDNS1123Subdomain(n.Group)
	switch {
	case n.Group == "":
		return errors.New("-group is missing: set it to the API group, in a domain that you own, such as acme.dev")
	case len(problems) > 0:
		return fmt.Errorf("-group=%s: %s", n.Group, strings.Join(problems, "; "))
	case !strings.Contains(n.Group, "."):
		return fmt.Errorf("-group=%s: must have a dot: an API group is a domain name, such as acme.dev", n.Group)
	case strings.HasSuffix("."+n.Group, ".k8s.io") || strings.HasSuffix("."+n.Group, ".kubernetes.io"):
		return fmt.Errorf("-group=%s: must not be in k8s.io or kubernetes.io: these are protected, and require the approval of Kubernetes (the annotation api-approved.kubernetes.io)", n.Group)
	case n.Of != nil: // no CustomResourceDefinition and no package is named after it
		return nil
	case len(n.Plural)+1+len(n.Group) > maxDomain:
		return fmt.Errorf("-group=%s: %s.%s, the name of the CustomResourceDefinition, must have at most %d characters", n.Group, n.Plural, n.Group, maxDomain)
	case !lowerWord.MatchString(n.Package):
		return fmt.Errorf("-group=%s: its first label becomes a Go package, so it must begin with a letter", n.Group)
	case isWordOfGo(n.Package) || slices.Contains([]string{"main", "init", "internal", "vendor", "testdata"}, n.Package):
		return fmt.Errorf("-group=%s: its first label becomes the Go package %s: it must not be a word of the language, nor main, init, internal, vendor or testdata", n.Group, n.Package)
	}
	return nil
}

// isWordOfGo reports whether a name is a keyword or predeclared.
func isWordOfGo(name string) bool {
	return token.IsKeyword(name) || types.Universe.Lookup(name) != nil
}

func checkVersion(version string) error {
	if !apiVersion.MatchString(version) {
		return fmt.Errorf("-version=%s: must be v1, v2 and so on, or an alpha or beta version, such as v1alpha1 or v2beta3: Kubernetes sorts versions by this format", version)
	}
	return nil
}

func checkKind(n names) error {
	switch private := strings.ToLower(n.Kind[:min(1, len(n.Kind))]) + n.Kind[min(1, len(n.Kind)):]; {
	case n.Kind == "":
		return errors.New("-kind is missing: set it to the kind of the new resource, such as Widget")
	case !goKind.MatchString(n.Kind):
		return fmt.Errorf("-kind=%s: must be an exported Go identifier, such as CacheCluster: a capital letter, then at least one letter or digit", n.Kind)
	case len(n.Kind) > maxKind:
		return fmt.Errorf("-kind=%s: must have at most %d characters: an object is called example-%s, and its name is a label of Pods", n.Kind, maxKind, n.Singular())
	case strings.HasSuffix(n.Kind, "List"):
		return fmt.Errorf("-kind=%s: must not end in List, which is the suffix of list types", n.Kind)
	case isWordOfGo(private) || isWordOfGo(n.Singular()):
		return fmt.Errorf("-kind=%s: %s is a word of Go, and generated code has a variable with that name: choose another, or add a word: %sClaim", n.Kind, n.Singular(), n.Kind)
	}
	if group, ok := builtIn()[n.Singular()]; ok {
		return fmt.Errorf("-kind=%s: must not be one of Kubernetes' own kinds (%s), which kubectl would use instead", n.Kind, group)
	}
	return nil
}

// builtIn returns the resources that client-go knows, by plural and singular, with their
// groups.
func builtIn() map[string]string {
	resources := map[string]string{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") || kind.Version == "__internal" {
			continue // a part of requests and responses in every group
		}
		group := cmp.Or(kind.Group, "core")
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		for _, name := range []string{plural.Resource, singular.Resource} {
			resources[name] = min(group, cmp.Or(resources[name], group)) // the result must not depend on the order
		}
	}
	return resources
}

func checkPlural(n names) error {
	switch {
	case !lowerWord.MatchString(n.Plural) || len(n.Plural) > maxLabel:
		return fmt.Errorf("-plural=%s: must begin with a lower-case letter, continue with lower-case letters and digits, and have at most %d characters: it becomes a part of URLs and, with capitals, a Go identifier", n.Plural, maxLabel)
	case isWordOfGo(n.Plural):
		return fmt.Errorf("-plural=%s: is a word of Go, and generated code has a type with that name: choose another", n.Plural)
	}
	if group, ok := builtIn()[n.Plural]; ok {
		return fmt.Errorf("-plural=%s: must not be one of Kubernetes' own resources (%s), which kubectl would use instead", n.Plural, group)
	}
	return nil
}

// shortNames are the short names of Kubernetes' own resources. client-go does not contain
// them.
var shortNames = sets.New("cm", "cs", "cj", "crd", "crds", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "ip", "limits", "netpol", "no", "ns",
	"pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs", "sa", "sc", "sts", "svc", "vac")

func checkShort(short string) error {
	switch {
	case short == "":
		return nil
	case !lowerWord.MatchString(short) || len(short) > maxLabel:
		return fmt.Errorf("-short=%s: must begin with a lower-case letter, continue with lower-case letters and digits, and have at most %d characters", short, maxLabel)
	case shortNames.Has(short) || builtIn()[short] != "":
		return fmt.Errorf("-short=%s: must not be one of Kubernetes' own names, which kubectl would use instead", short)
	}
	return nil
}

// checkDir returns the absolute path of the new project's directory, or an error if a
// project can't be written there.
func checkDir(dir, root string) (string, error) {
	if dir == "" {
		return "", errors.New("-dir is missing: set it to the directory for the new project, such as ../widgets")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	} else {
		return "", fmt.Errorf("-dir=%s: %w: its parent directory must exist", dir, err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case dir == root || strings.HasPrefix(dir, root+string(filepath.Separator)):
		return "", fmt.Errorf("-dir=%s: must not be inside this project, %s", dir, root)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("-dir=%s: %w: choose a directory that does not exist or is empty", dir, err)
	case len(entries) > 0:
		return "", fmt.Errorf("-dir=%s: is not empty (it has %s): choose a directory that does not exist or is empty", dir, entries[0].Name())
	}
	return dir, nil
}
