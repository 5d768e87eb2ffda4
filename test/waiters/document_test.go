// SPDX-License-Identifier: Apache-2.0

// What the document about Argo CD says, and the health check that it installs.

package waiters

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
	"sigs.k8s.io/yaml"
)

// installed matches the flag by which the document adds a file to the ConfigMap of Argo CD.
var installed = regexp.MustCompile(`--from-file=resource\.customizations\.health\.([^=\s]+)=(\S+)`)

// loadHealthCheck returns the health check that artifacts/argocd/README.md installs.
func loadHealthCheck(t *testing.T) *healthCheck {
	t.Helper()
	flags := installed.FindAllStringSubmatch(string(read(t, filepath.Join(root, "artifacts/argocd/README.md"))), -1)
	if len(flags) != 1 {
		t.Fatalf("the document installs %d health checks", len(flags))
	}
	definition := definitionOf(t)
	if want := definition.Spec.Group + "_" + definition.Spec.Names.Kind; flags[0][1] != want {
		t.Errorf("the document installs the health check of %s, not of %s", flags[0][1], want)
	}
	path := filepath.Join(root, flags[0][2])
	chunk, err := parse.Parse(strings.NewReader(string(read(t, path))), path)
	must(t, err)
	script, err := lua.Compile(chunk, path)
	must(t, err)
	return &healthCheck{script}
}

// definition is what the tests read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string
		Names struct{ Kind string }
		// Versions have the default of a Foo's conditions.
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema struct {
					Properties struct {
						Status struct {
							Properties struct {
								Conditions struct{ Default []any }
							}
						}
					}
				}
			}
		}
	}
}

// definitionOf reads the definition of Foos.
func definitionOf(t *testing.T) (found definition) {
	t.Helper()
	must(t, yaml.Unmarshal(read(t, filepath.Join(root, "artifacts/crd/samplecontroller.k8s.io_foos.yaml")), &found))
	return found
}
