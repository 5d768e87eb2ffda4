// SPDX-License-Identifier: Apache-2.0

// The trackers of client-go's fake clientsets guess the plural of a kind (kubernetes/client-go
// issue 1082). For a kind with another plural, such as gateways, fake.NewClientset refuses each
// write, and does not find the objects that it got.

package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const fakeClientset = "pkg/generated/clientset/versioned/fake/"

// correctFakes makes the fake clientset use a tracker that knows the plurals of the kinds, if one of
// them is not as guessed.
func correctFakes(crds []definition) error {
	var plurals strings.Builder
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
			if guessed, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(crd.Spec.Names.Kind)); guessed != resource {
				fmt.Fprintf(&plurals, "\t{Group: %q, Version: %q, Resource: %q}: %q,\n", resource.Group, resource.Version, resource.Resource, guessed.Resource)
			}
		}
	}
	if plurals.Len() == 0 {
		return nil
	}
	source, err := os.ReadFile(fakeClientset + "clientset_generated.go")
	if err != nil {
		return err
	}
	const begin = "\tfor _, obj := range objects {\n"
	if strings.Count(string(source), begin) != 2 {
		return fmt.Errorf("%sclientset_generated.go is not as expected: the tracker of the fake clientset can't be replaced", fakeClientset)
	}
	source = []byte(strings.ReplaceAll(string(source), begin, "\to = withPlurals{o}\n"+begin))
	if err := os.WriteFile(fakeClientset+"clientset_generated.go", source, 0o600); err != nil {
		return err
	}
	header, err := os.ReadFile("hack/boilerplate.go.txt")
	if err != nil {
		return err
	}
	return os.WriteFile(fakeClientset+"plurals.go", []byte(string(header)+"\n"+strings.Replace(pluralsFile, "PLURALS", plurals.String(), 1)), 0o600)
}

//go:embed plurals.tpl
var pluralsFile string
