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
	betaFile  = "pkg/apis/samplecontroller/v1beta1/types.go"
	clientDir = "pkg/generated/clientset/versioned/typed/samplecontroller/"
)

// TestVerifyThenUpdate makes every kind of difference at once: verify must report each,
// update must fix each, and verify must then pass.
func TestVerifyThenUpdate(t *testing.T) {
	c := newCheckout(t)
	c.replace(typesFile, "type FooStatus struct {\n",
		"type FooStatus struct {\n\t// Mood is here for the test.\n\t// +optional\n\tMood *string `json:\"mood,omitempty\"`\n\n")
	c.replace(clientDir+"v1alpha1/foo.go", "package v1alpha1", "package v1alpha1 // edited by hand")
	c.bash("rm pkg/generated/listers/samplecontroller/v1alpha1/foo.go")
	c.write("pkg/generated/listers/samplecontroller/v1/left_over.go", "package v1\n")
	c.write(api+"zz_generated.left_over.go", "package v1alpha1\n")
	c.write("artifacts/crd/samplecontroller.k8s.io_leftovers.yaml", "kind: CustomResourceDefinition\n")
	c.addVersion("v1alpha1", "v1beta1")
	c.replace(betaFile, "// Foo asks for", "// Foo says in other words that it asks for")
	// A version without printer columns begins with another field.
	c.bash(`grep -v "^// +kubebuilder:printcolumn:" "$1" >changed && mv changed "$1"`, betaFile)
	c.write(api+"bar.go", strings.ReplaceAll(kind, "'", "`"))

	// Verify reports each difference, and touches nothing.
	c.remember()
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
		"--- tree/artifacts/crd/samplecontroller.k8s.io_leftovers.yaml",
		"+  - name: v1beta1", // the new version
		"+++ generated/"+clientDir+"v1beta1/fake/fake_foo.go",
		"+- samplecontroller.k8s.io_bars.yaml", // the new kind
		"+    kind: Bar",
		"+type BarInterface interface {",
		"+type BarLister interface {",
		"+type BarInformer interface {",
		"+func Bar(name, namespace string) *BarApplyConfiguration {",
		"+++ generated/"+clientDir+"v1alpha1/fake/fake_bar.go",
	)
	if !strings.Contains(out, `WithResource("bars")`) || !strings.Contains(out, `.BarList"`) {
		t.Error("the new kind is not in the generic informer, or not in the OpenAPI schema")
	}
	c.wantSame()

	// Update fixes each difference, and changes nothing that is not generated.
	if out, code := c.run("hack/update-codegen.sh"); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s", code, out)
	}
	c.wantSame(":!pkg/generated", ":!*/zz_generated.*", ":!artifacts/crd")

	// Verify then passes, and touches nothing.
	c.remember()
	if out, code := c.run("hack/verify-codegen.sh"); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, out)
	}
	c.wantSame()
}

// TestUpdateFailsLoudly breaks one input of update at a time. update must say what is
// wrong, exit non-zero and leave the tree unchanged.
func TestUpdateFailsLoudly(t *testing.T) {
	const group, deepcopy, openAPI = "// +groupName=samplecontroller.k8s.io\n", "// +k8s:deepcopy-gen=package\n", "// +k8s:openapi-gen=true\n"
	for name, test := range map[string]struct{ file, from, to, want string }{
		"syntax error":          {typesFile, "type FooSpec struct {", "type FooSpec struct {{", "types.go:"},
		"unknown type":          {typesFile, "Replicas *int32", "Replicas *Nope", "Nope"},
		"marker refused":        {typesFile, "validation:Maximum=10", "validation:Maximum=ten", "controller-gen ended with status 1"},
		"no genclient":          {typesFile, "// +genclient\n", "", "no file has the marker // +genclient"},
		"no group":              {api + "doc.go", group, "", "no file has the marker // +groupName="},
		"no deepcopy functions": {api + "doc.go", deepcopy, "", "no file has the marker // +k8s:deepcopy-gen=package"},
		"no OpenAPI definition": {api + "doc.go", openAPI, "", "no file has the marker // +k8s:openapi-gen=true"},
		"misspelt marker":       {api + "doc.go", deepcopy, deepcopy + "// +k8s:defaulting-gen=TypeMeta\n", "unrecognized +k8s: tag(s): +k8s:defaulting-gen"},
		"no CRD":                {api + "doc.go", group, "// +kubebuilder:skip\n" + group, "no CustomResourceDefinition was made for kind Foo"},
		"schema program fails":  {"hack/models-schema/main.go", "func main() {\n", "func main() {\n\tos.Exit(3)\n", "hack/models-schema ended with status"},
		"no API":                {"", "", "", "no API found: expected folders pkg/apis/GROUP/VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			if test.file == "" {
				c.bash("rm -r pkg/apis/samplecontroller")
			} else {
				c.replace(test.file, test.from, test.to)
			}
			c.remember()
			out, code := c.run("hack/update-codegen.sh")
			if code == 0 || !strings.Contains(out, test.want) {
				t.Errorf("exit code %d, or the output lacks %q:\n%s", code, test.want, out)
			}
			c.wantSame()
		})
	}
}

// TestUpdateRefusesVersionsThatDiffer renames a field in a second version. The API server
// would drop it without a word, because there is no conversion.
func TestUpdateRefusesVersionsThatDiffer(t *testing.T) {
	c := newCheckout(t)
	c.addVersion("v1alpha1", "v1beta1")
	c.replace(betaFile, `json:"replicas,omitempty"`, `json:"size,omitempty"`)
	c.remember()
	for _, script := range []string{"hack/update-codegen.sh", "hack/verify-codegen.sh"} {
		out, code := c.run(script)
		if code == 0 {
			t.Errorf("%s: exit code 0, want an error", script)
		}
		c.wantLines(out,
			"--- samplecontroller.k8s.io_foos/v1alpha1",
			"+++ samplecontroller.k8s.io_foos/v1beta1",
			"-              replicas:",
			"+              size:",
			"codegen: the versions of a kind differ, see above.",
			"The API server does not convert between versions of this kind. It drops a field that the other",
		)
		c.wantSame()
	}
}
