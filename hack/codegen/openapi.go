// SPDX-License-Identifier: Apache-2.0

// The OpenAPI definitions of types that the API's types refer to.

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// What openapi-gen writes: its imports, the types in the field Dependencies of a definition, and a
// type, as "k8s.io/api/core/v1.Pod" or as v1.Pod{}.OpenAPIModelName().
var (
	importedPackage = regexp.MustCompile(`(?m)^\t(\w+) "(\S+)"$`)
	dependencies    = regexp.MustCompile(`Dependencies: \[\]string\{\n(.*)\},\n`)
	definedType     = regexp.MustCompile(`"([^"]+)"|(\w+)(\.\w+)\{\}\.OpenAPIModelName\(\)`)
)

// missingDefinitions returns the packages of the types that a file of openapi-gen refers to and
// does not define, without those that openapi-gen has already searched: it writes nothing about
// packages of others that have no marker.
func missingDefinitions(file, module string, searched []string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, match := range importedPackage.FindAllStringSubmatch(string(text), -1) {
		paths[match[1]] = match[2]
	}
	types := func(text string) (names []string) {
		for _, match := range definedType.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1]+paths[match[2]]+match[3])
		}
		return names
	}
	missing := map[string]bool{}
	for _, match := range dependencies.FindAllStringSubmatch(string(text), -1) {
		for _, name := range types(match[1]) {
			missing[name] = true
		}
	}
	index, _, _ := strings.Cut(string(text), "\n\t}\n}\n") // GetOpenAPIDefinitions is the first function
	for _, name := range types(index) {
		delete(missing, name)
	}
	var errs []error
	var packages []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		pkg := name[:strings.LastIndex(name, ".")]
		if dir := strings.TrimPrefix(pkg, module+"/"); strings.HasPrefix(dir, "pkg/apis/") {
			errs = append(errs, fmt.Errorf("%s/doc.go: the type %s is a part of a kind: add the markers // +k8s:openapi-gen=true, // +k8s:deepcopy-gen=package and // +k8s:openapi-model-package=%s", dir, name[len(pkg)+1:], modelPackage(module, dir)))
		}
		if !slices.Contains(searched, pkg) {
			packages = append(packages, pkg)
		}
	}
	return slices.Compact(packages), errors.Join(errs...)
}
