// SPDX-License-Identifier: Apache-2.0

// Tests of hack/update-codegen.sh and hack/verify-codegen.sh.

package codegen

import (
	"strings"
	"testing"
)

const (
	api       = "pkg/apis/samplecontroller/v1alpha1/"
	typesFile = api + "types.go"
	crdFile   = "artifacts/crd/samplecontroller.k8s.io_foos.yaml"
	clientDir = "pkg/generated/clientset/versioned/typed/samplecontroller/"
)

// TestVerifyThenUpdate makes every kind of difference at once: verify must report each,
// update must fix each, and verify must then pass.
func TestVerifyThenUpdate(t *testing.T) {
	c := newCheckout(t)
	c.replace(typesFile, "type FooStatus struct {\n",
		"type FooStatus struct {\n\t// Mood is here for the test.\n\t// +optional\n\tMood *string `json:\"mood,omitempty\"`\n\n")
	c.replace(clientDir+"v1alpha1/foo.go", "package v1alpha1", "package v1alpha1 // edited by hand")
	c.remove("pkg/generated/listers/samplecontroller/v1alpha1/foo.go")
	c.write("pkg/generated/listers/samplecontroller/v1/left_over.go", "package v1\n")
	c.write(api+"zz_generated.left_over.go", "package v1alpha1\n")
	c.addVersion("v1alpha1", "v1beta1")
	c.removeLines(strings.Replace(typesFile, "v1alpha1", "v1beta1", 1), "// +kubebuilder:printcolumn:")
	c.addKind(api, "Bar")
	c.write("artifacts/crd/samplecontroller.k8s.io_leftovers.yaml", "kind: CustomResourceDefinition\n")

	t.Run("verify reports each difference and touches nothing", func(t *testing.T) {
		c := c.with(t)
		before := c.snapshot()
		out, code := c.run("hack/verify-codegen.sh")
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		c.wantLines(out,
			"+              mood:",                                            // the new field, in the CRD
			"+\tif in.Mood != nil {",                                          // and in deepcopy
			"-package v1alpha1 // edited by hand",                             // changed
			"+// FooLister helps list Foos.",                                  // missing
			"--- tree/pkg/generated/listers/samplecontroller/v1/left_over.go", // untracked
			"--- tree/"+api+"zz_generated.left_over.go",
			"+++ generated/"+clientDir+"v1beta1/foo.go",  // the new version
			"+++ generated/"+clientDir+"v1alpha1/bar.go", // the new kind
			"+- samplecontroller.k8s.io_bars.yaml",
		)
		c.wantSame(before)
	})

	t.Run("update fixes each difference", func(t *testing.T) {
		c := c.with(t)
		before := c.snapshot()
		if _, code := c.run("hack/update-codegen.sh"); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		c.wantInFile(crdFile, "              mood:\n", "    name: v1alpha1\n", "  - name: v1beta1\n") // without printer columns, a version's first field is its name
		c.wantInFile(api+"zz_generated.deepcopy.go", "if in.Mood != nil")
		c.wantInFile("pkg/generated/listers/samplecontroller/v1alpha1/foo.go", "type FooLister interface")
		c.wantInFile(clientDir+"v1beta1/fake/fake_foo.go", "package fake")
		c.wantInFile("artifacts/crd/samplecontroller.k8s.io_bars.yaml", "    kind: Bar\n", "  - name: v1alpha1\n")
		c.wantInFile("artifacts/crd/Kustomization", "resources:\n- samplecontroller.k8s.io_bars.yaml\n- samplecontroller.k8s.io_foos.yaml\n")
		for file, part := range map[string]string{
			clientDir + "v1alpha1/bar.go":                                               "type BarInterface interface",
			clientDir + "v1alpha1/fake/fake_bar.go":                                     "func newFakeBars(",
			"pkg/generated/listers/samplecontroller/v1alpha1/bar.go":                    "type BarLister interface",
			"pkg/generated/informers/externalversions/samplecontroller/v1alpha1/bar.go": "type BarInformer interface",
			"pkg/generated/applyconfiguration/samplecontroller/v1alpha1/bar.go":         "func Bar(name, namespace string) *BarApplyConfiguration",
			"pkg/generated/informers/externalversions/generic.go":                       `WithResource("bars")`,
			"pkg/generated/openapi/schema.json":                                         `.BarList"`,
		} {
			c.wantInFile(file, part)
		}
		c.wantAbsent("pkg/generated/listers/samplecontroller/v1", api+"zz_generated.left_over.go", "artifacts/crd/samplecontroller.k8s.io_leftovers.yaml")
		if text := c.read(clientDir + "v1alpha1/foo.go"); strings.Contains(text, "edited by hand") {
			t.Error("the manual edit is still there")
		}
		for file, sum := range before {
			if !generated(file) && c.snapshot()[file] != sum {
				t.Errorf("%s is not generated, but was changed", file)
			}
		}
	})

	t.Run("verify then passes and touches nothing", func(t *testing.T) {
		c := c.with(t)
		before := c.snapshot()
		if out, code := c.run("hack/verify-codegen.sh"); code != 0 {
			t.Errorf("exit code %d, want 0:\n%s", code, out)
		}
		c.wantSame(before)
	})
}

// TestUpdateFailsLoudly breaks one input of update at a time. update must say what is
// wrong, exit non-zero and leave the tree unchanged.
func TestUpdateFailsLoudly(t *testing.T) {
	for name, test := range map[string]struct {
		file, from, to string
		want           string
	}{
		"syntax error": {
			typesFile, "type FooSpec struct {", "type FooSpec struct {{", "types.go:",
		},
		"unknown type": {
			typesFile, "Replicas *int32", "Replicas *Nope", "Nope",
		},
		"marker that a generator refuses": {
			typesFile, "validation:Maximum=10", "validation:Maximum=ten", "controller-gen ended with status 1",
		},
		"no genclient": {
			typesFile, "// +genclient\n", "", "no file has the marker // +genclient",
		},
		"no group": {
			api + "doc.go", "// +groupName=samplecontroller.k8s.io\n", "", "no file has the marker // +groupName=",
		},
		"no deepcopy functions": {
			api + "doc.go", "// +k8s:deepcopy-gen=package\n", "", "no file has the marker // +k8s:deepcopy-gen=package",
		},
		"no OpenAPI definitions": {
			api + "doc.go", "// +k8s:openapi-gen=true\n", "", "no file has the marker // +k8s:openapi-gen=true",
		},
		"misspelt marker": {
			api + "doc.go", "// +k8s:deepcopy-gen=package\n", "// +k8s:deepcopy-gen=package\n// +k8s:defaulting-gen=TypeMeta\n",
			"unrecognized +k8s: tag(s): +k8s:defaulting-gen",
		},
		"no CRD": {
			api + "doc.go", "// +groupName=", "// +kubebuilder:skip\n// +groupName=",
			"no CustomResourceDefinition was made for kind Foo",
		},
		"schema program fails": {
			"hack/models-schema/main.go", "func main() {\n", "func main() {\n\tos.Exit(3)\n", "hack/models-schema ended with status",
		},
		"no API": {
			"", "", "", "no API found: expected folders pkg/apis/GROUP/VERSION",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			if test.file == "" {
				c.remove("pkg/apis/samplecontroller")
			} else {
				c.replace(test.file, test.from, test.to)
			}
			before := c.snapshot()
			out, code := c.run("hack/update-codegen.sh")
			if code == 0 {
				t.Error("exit code 0, want an error")
			}
			if !strings.Contains(out, test.want) {
				t.Errorf("output lacks %q:\n%s", test.want, out)
			}
			c.wantSame(before)
		})
	}
}

// TestUpdateRefusesVersionsThatDiffer renames a field in a second version. The API server
// would drop it without a word, because there is no conversion.
func TestUpdateRefusesVersionsThatDiffer(t *testing.T) {
	c := newCheckout(t)
	c.addVersion("v1alpha1", "v1beta1")
	c.replace(strings.Replace(typesFile, "v1alpha1", "v1beta1", 1), `json:"replicas,omitempty"`, `json:"size,omitempty"`)
	before := c.snapshot()
	for _, script := range []string{"hack/update-codegen.sh", "hack/verify-codegen.sh"} {
		out, code := c.run(script)
		if code == 0 {
			t.Errorf("%s: exit code 0, want an error", script)
		}
		c.wantLines(out,
			"samplecontroller.k8s.io_foos.yaml: the schemas of v1alpha1 and v1beta1 of foos.samplecontroller.k8s.io differ:",
			"  spec.replicas: only in v1alpha1",
			"  spec.size: only in v1beta1",
			"The API server does not convert between versions of this kind. It drops a field that the other",
		)
		c.wantSame(before)
	}
}
