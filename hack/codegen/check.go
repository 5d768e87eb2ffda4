// SPDX-License-Identifier: Apache-2.0

// The clients and the CustomResourceDefinitions come from different generators, which read
// different markers. Here, what they made is compared.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/hack/codegen/internal/validate"
)

// definition is a CustomResourceDefinition, with its file.
type definition struct {
	file string
	apiextensionsv1.CustomResourceDefinition
}

// readCRDs reads the files that controller-gen wrote.
func readCRDs() (crds []definition, err error) {
	files, err := filepath.Glob("artifacts/crd/*_*.yaml")
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		crd := definition{file: file}
		err = errors.Join(err, readErr, yaml.UnmarshalStrict(text, &crd.CustomResourceDefinition))
		crds = append(crds, crd)
	}
	return crds, err
}

// pluralExceptions returns KIND:PLURAL of each kind, so that clients use the plural of the
// CustomResourceDefinition. The generators of clients pluralize by other rules.
func pluralExceptions(crds []definition) (exceptions []string, err error) {
	seen := map[string]definition{}
	for _, crd := range crds {
		kind, plural := crd.Spec.Names.Kind, crd.Spec.Names.Plural
		if !token.IsIdentifier(plural) || slices.Contains(imported, plural) {
			err = errors.Join(err, fmt.Errorf("%s: the plural %s of the kind %s would be a name in Go, where it has another meaning: choose another, of letters and digits, with // +kubebuilder:resource:path=", crd.file, plural, kind))
		}
		if other, ok := seen[kind]; ok && other.Spec.Names.Plural != plural {
			err = errors.Join(err, fmt.Errorf("%s and %s: the kind %s has the plurals %s and %s, and client-gen knows one for all groups: choose one with // +kubebuilder:resource:path=", other.file, crd.file, kind, other.Spec.Names.Plural, plural))
		}
		seen[kind] = crd
		exceptions = append(exceptions, kind+":"+casedLike(plural, kind))
	}
	slices.Sort(exceptions)
	return slices.Compact(exceptions), err
}

// imported lists the packages that clients import.
var imported = []string{"context", "gentype", "http", "rest", "scheme", "types", "v1", "watch"}

// casedLike gives a plural the capitals of its kind as far as both have the same letters:
// httpmice of HTTPMouse is HTTPMice.
func casedLike(plural, kind string) string {
	alike := 0
	for alike < len(plural) && alike < len(kind) && plural[alike] == strings.ToLower(kind)[alike] {
		alike++
	}
	return kind[:alike] + plural[alike:]
}

// What client-gen writes: the method that returns the client of a kind, and requests for a
// subresource.
var (
	getter      = regexp.MustCompile(`(?m)^\t\w+\((namespace string)?\) (\w+)Interface$`)
	subresource = regexp.MustCompile(`SubResource\("(\w+)"\)`)
)

// client is the client of a kind, as client-gen made it.
type client struct {
	namespaced bool
	source     string
}

// readClients reads the clients of an API version, by kind.
func readClients(api string) (map[string]client, error) {
	files, err := filepath.Glob("pkg/generated/clientset/versioned/typed/" + api + "/*.go")
	clients := map[string]client{}
	for _, file := range files {
		source, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		if match := getter.FindStringSubmatch(string(source)); match != nil {
			clients[match[2]] = client{match[1] != "", string(source)}
		}
	}
	return clients, err
}

// check compares what was generated, and prints a note about CustomResourceDefinitions that are
// too large for kubectl apply.
func check(packages []*apiPackage, crds []definition, module string) error {
	var errs []error
	for _, p := range packages {
		if len(p.kinds) > 0 {
			errs = append(errs, p.checkClients(crds, module))
		}
	}
	var large []string
	for _, crd := range crds {
		errs = append(errs, crd.validate())
		if crd.tooLargeForApply() {
			large = append(large, crd.file)
		}
	}
	if len(large) > 0 {
		fmt.Printf("%s: too large for kubectl apply without --server-side. Use kubectl apply --server-side -f artifacts/crd\n", strings.Join(large, ", "))
	}
	return errors.Join(errs...)
}

// checkClients compares the clients of a package with the CustomResourceDefinitions.
func (p *apiPackage) checkClients(crds []definition, module string) error {
	group, _ := p.marker("groupName")
	clients, err := readClients(strings.ToLower(strings.TrimPrefix(p.dir, "pkg/apis/")))
	models, readErr := os.ReadFile("pkg/generated/applyconfiguration/internal/internal.go")
	errs := []error{err, readErr}
	served := map[string]bool{}
	for _, crd := range crds {
		kind := crd.Spec.Names.Kind
		i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == path.Base(p.dir) })
		if crd.Spec.Group != group || i < 0 {
			continue
		}
		served[kind] = true
		at := fmt.Sprintf("%s/%s: the kind %s", p.dir, p.files[kind], kind)
		if c, ok := clients[kind]; ok {
			errs = append(errs, c.compare(at, crd.Spec.Scope, crd.Spec.Versions[i].Subresources))
		} else {
			errs = append(errs, fmt.Errorf("%s has a CustomResourceDefinition and no client: add // +genclient above it", at))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(clients)) {
		if !served[kind] {
			errs = append(errs, fmt.Errorf("%s: no CustomResourceDefinition was made for kind %s in %s/%s: neither may a marker skip the kind, nor another kind of the group have its plural", p.dir, kind, group, path.Base(p.dir)))
		}
		if strings.Contains(clients[kind].source, "\tApply(") && !strings.Contains(string(models), "- name: "+modelPackage(module, p.dir)+"."+kind+"\n") {
			errs = append(errs, fmt.Errorf("%s: no OpenAPI definition was made for kind %s, so fake.NewClientset can't apply it: check the markers +k8s:openapi-gen", p.dir, kind))
		}
	}
	return errors.Join(errs...)
}

// compare returns an error for each call of a client that the API server would answer with 404.
func (c client) compare(at string, scope apiextensionsv1.ResourceScope, has *apiextensionsv1.CustomResourceSubresources) error {
	var errs []error
	switch namespaced := scope == apiextensionsv1.NamespaceScoped; {
	case c.namespaced && !namespaced:
		errs = append(errs, fmt.Errorf("%s is cluster-scoped, and its client is namespaced: add // +genclient:nonNamespaced, or remove scope=Cluster from // +kubebuilder:resource", at))
	case !c.namespaced && namespaced:
		errs = append(errs, fmt.Errorf("%s is namespaced, and its client is not: add scope=Cluster to // +kubebuilder:resource, or remove // +genclient:nonNamespaced", at))
	}
	if (has == nil || has.Status == nil) && (strings.Contains(c.source, "\tUpdateStatus(") || strings.Contains(c.source, "\tApplyStatus(")) {
		errs = append(errs, fmt.Errorf("%s has a status and no status subresource: add // +kubebuilder:subresource:status, or // +genclient:noStatus for a client without UpdateStatus", at))
	}
	for _, match := range subresource.FindAllStringSubmatch(c.source, -1) {
		if name := match[1]; has == nil || name == "status" && has.Status == nil || name == "scale" && has.Scale == nil || name != "status" && name != "scale" {
			errs = append(errs, fmt.Errorf("%s has a client for the subresource %s, which its CustomResourceDefinition lacks: add // +kubebuilder:subresource:%s (status or scale), or remove // +genclient:method", at, name, name))
		}
	}
	return errors.Join(errs...)
}

// validate returns why an API server would refuse the CustomResourceDefinition.
func (d definition) validate() error {
	refusals, err := validate.CRD(&d.CustomResourceDefinition)
	if err != nil {
		return err
	}
	var errs []error
	for _, err := range refusals {
		errs = append(errs, fmt.Errorf("%s: the API server would refuse it: %s", d.file, strings.Join(append([]string{err.Error()}, help(err.Error())...), ": ")))
	}
	return errors.Join(errs...)
}

// tooLargeForApply reports whether the annotation in which kubectl apply keeps a copy of the
// object would exceed the limit for annotations.
func (d definition) tooLargeForApply() bool {
	const limit = 256 << 10
	text, err := json.Marshal(d.CustomResourceDefinition)
	size := len(text) + len("kubectl.kubernetes.io/last-applied-configuration")
	for key, value := range d.Annotations {
		size += len(key) + len(value)
	}
	return err == nil && size > limit
}
