// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// mistake is a package in pkg/apis with a kind Thing, as edits change it: pairs of an old and a new
// text, in doc.go or types.go. Without a directory, the first edit is a command.
type mistake struct {
	dir   string
	edits []string
	want  string // in the output
}

const (
	genclient = "// +genclient\n"
	object    = "// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object\n"
	metaV1    = "metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n"
)

// marked, field, declared and imported return edits: a marker of the kind, a field of it, something
// before it, and an import.
func marked(marker string) []string  { return []string{genclient, genclient + marker + "\n"} }
func field(line string) []string     { return []string{"}\n\n" + object, line + "\n}\n\n" + object} }
func declared(text string) []string  { return []string{genclient, text + "\n\n" + genclient} }
func importing(spec string) []string { return []string{metaV1, metaV1 + spec + "\n"} }
func all(edits ...[]string) []string { return slices.Concat(edits...) }

// mistakes are found one after the other. Those that are found at the same time are in one tree.
var mistakes = map[string][]mistake{
	"no API": {
		{"", []string{"rm -r pkg/apis/*"}, "no API found: expected directories pkg/apis/GROUP/VERSION"},
	},
	"a module of its own": {
		{"", []string{"echo module example.com/sample-controller/pkg/apis >pkg/apis/go.mod"}, "pkg/apis/go.mod: pkg/apis must be in the same module as pkg/generated"},
	},
	"a file in the way": {
		{"", []string{"echo by hand >" + api + "README.md"}, api + "README.md is not generated, and would be overwritten: move it"},
	},
	"a syntax error": {
		{"a/v1", declared("type Twice struct{{}"), "codegen: pkg/apis/a/v1/types.go:7:"},
	},
	"before anything is generated": {
		{"a/v1", []string{"pkg.apis.a.v1", "acme.v1"}, "pkg/apis/a/v1/doc.go: the marker // +k8s:openapi-model-package=com.example.sample-controller.acme.v1 must be // +k8s:openapi-model-package=com.example.sample-controller.pkg.apis.a.v1:"},
		{"b/v1", []string{"// +groupName=b.acme.dev\n", ""}, "pkg/apis/b/v1: no file has the marker // +groupName="},
		{"c/v1", []string{"// +k8s:openapi-gen=true\n", "", "package v1\n\nimport", "// +k8s:openapi-gen=true\n\npackage v1\n\nimport"}, "pkg/apis/c/v1/types.go: the marker // +k8s:openapi-gen=true must be in doc.go"},
		{"d/v1", []string{"groupName=d.", "groupName=chaos-mesh."}, "pkg/apis/d/v1/doc.go: clients of the group chaos-mesh.acme.dev are named after \"chaos-mesh\", which is no Go identifier: add // +groupGoName=NAME"},
		{"e/v1", []string{"groupName=e.acme", "groupName=a.other"}, "pkg/apis/e/v1/doc.go: clients of the group a.other.dev have the same name as those in pkg/apis/a, a: add // +groupGoName=NAME"},
		{"f", nil, "pkg/apis/f/types.go: the kind Thing must be in a directory pkg/apis/GROUP/VERSION"},
		{"g/v1", []string{"Thing", "Package"}, "pkg/apis/g/v1/types.go: the kind Package must have another name: package is a word of Go"},
		{"h/v1", []string{"Thing", "Resource"}, "the kind Resource must have another name: zz_generated.register.go declares Resource"},
		{"i/v1", []string{"Thing", "Windows"}, "the kind Windows must have another name: the go command compiles a file fake_windows.go only on some platforms"},
		{"j/v1", []string{"Thing", "Result"}, "the kind Result must have another name"},
		{"k/v1", declared("var SchemeBuilder, AddToScheme int"), "pkg/apis/k/v1/types.go declares SchemeBuilder, AddToScheme, and so does zz_generated.register.go"},
		{"l/v1", []string{genclient, ""}, "pkg/apis/l/v1: no file has the marker // +genclient"},
		{"m/v1", []string{"// +k8s:openapi-model-package=com.example.sample-controller.pkg.apis.m.v1\n", ""}, "pkg/apis/m/v1/doc.go: the marker // +k8s:openapi-model-package=com.example.sample-controller.pkg.apis.m.v1 is missing"},
		{"o/v1", []string{"// +k8s:deepcopy-gen=package\n", ""}, "pkg/apis/o/v1: no file has the marker // +k8s:deepcopy-gen=package: add it to doc.go"},
		{"p/v1", []string{"// +k8s:openapi-gen=true\n", ""}, "pkg/apis/p/v1: no file has the marker // +k8s:openapi-gen=true: add it to doc.go"},
		{"myGroup/v1", nil, "pkg/apis/myGroup: the directory's name becomes that of Go packages: rename it"},
		{"my-group/v1", nil, "pkg/apis/my-group: the directory's name becomes that of Go packages: rename it"},
		{"n/v1", []string{"package v1\n", "package v2\n"}, "pkg/apis/n/v1: the package must be called v1, as the directory is: controller-gen takes its name for the version"},
	},
	"by controller-gen": {
		{"a/v1", field("Ratio float64 `json:\"ratio\"`"), "add ,allowDangerousTypes=true behind generateEmbeddedObjectMeta=true in hack/codegen.sh"},
		{"b/v1", all(declared("// +kubebuilder:validation:MaxProperties=3\ntype Labels = map[string]string"), field("Labels Labels `json:\"labels\"`")), "write type Labels without the ="},
		{"e/v1", all(importing("\"net/url\""), field("E url.URL `json:\"e\"`")), "pkg/apis/e/v1/types.go:15: E url.URL `json:\"e\"`"},
		{"f/v1", all(importing("\"net\""), field("F net.IP `json:\"f\"`")), "use a string, or runtime.RawExtension"},
		{"c/v1", field("C complex128 `json:\"c\"`"), "pkg/apis/c/v1/types.go:"},
		{"g/v1", field("G Nope `json:\"g\"`"), "pkg/apis/g/v1/types.go:14:3: unknown type"},
		{"d/v1", field("// +kubebuilder:validation:Maximum=ten\nD int32 `json:\"d\"`"), "controller-gen can't process pkg/apis, see above"},
	},
	"an import that is not in go.mod": {
		{"a/v1", all(importing("\"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1\""), field("Any v1.JSON `json:\"any\"`")), "run go get k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"},
		{"b/v1", importing("\"example.com/nowhere\""), "\npkg/apis/b/v1/types.go:5:1: "},
	},
	"the package does not compile": {
		{"a/v1", declared("type Twice struct{}\n\ntype Twice struct{}"), "pkg/apis does not compile, see above"},
		{"b/v1", declared("func init() { SchemeBuilder.Register(&Thing{}) }"), "zz_generated.register.go registers all kinds"},
	},
	"versions of other shapes": {
		{"a/v1", marked("// +kubebuilder:storageversion"), "things.a.acme.dev: v1 and v2 have different schemas:\n--- v1\n+++ v2\n"},
		{"a/v2", field("B string `json:\"b,omitempty\"`"), "pkg/apis/GROUP/versions.yaml, or there, that a webhook of yours converts (hack/codegen/migrate/README.md), or serve only one version"},
	},
	"a misspelled marker": {
		{"a/v1", []string{"// +k8s:deepcopy-gen=package\n", "// +k8s:deepcopy-gen=package\n// +k8s:defaulting-gen=TypeMeta\n"}, "unrecognized +k8s: tag(s): +k8s:defaulting-gen"},
	},
	"by deepcopy-gen": {
		{"a/v1", declared("type Hook[T any] struct {\n\tF func(T)\n}"), "add // +k8s:deepcopy-gen=false above the type"},
	},
	"after the methods were generated": {
		{"a/v1", []string{genclient + object, genclient}, "pkg/apis/a/v1/types.go: the type Thing has no DeepCopyObject: add // +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object above it"},
		{"b/v1", marked("// +kubebuilder:resource:path=the-things"), "the plural the-things of the kind Thing would be a name in Go"},
		{"c/v1", nil, "the kind Thing has the plurals the-things and things, and client-gen knows one for all groups"},
	},
	"a type of a package without markers": {
		{"a/v1", all(importing("\"example.com/sample-controller/pkg/apis/b/v1/shared\""), field("Ref shared.Ref `json:\"ref\"`")), "pkg/apis/b/v1/shared/doc.go: the type Ref is a part of a kind: add the markers // +k8s:openapi-gen=true, // +k8s:deepcopy-gen=package and // +k8s:openapi-model-package=com.example.sample-controller.pkg.apis.b.v1.shared"},
	},
	"by comparing what was generated": {
		{"a/v1", marked("// +kubebuilder:resource:scope=Cluster"), "pkg/apis/a/v1/types.go: the kind Thing is cluster-scoped, and its client is namespaced: add // +genclient:nonNamespaced"},
		{"b/v1", marked("// +genclient:nonNamespaced"), "pkg/apis/b/v1/types.go: the kind Thing is namespaced, and its client is not: add scope=Cluster"},
		{"c/v1", field("Status metav1.Condition `json:\"status,omitempty\"`"), "pkg/apis/c/v1/types.go: the kind Thing has a status and no status subresource: add // +kubebuilder:subresource:status"},
		{"d/v1", marked("// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale"), "has a client for the subresource scale, which its CustomResourceDefinition lacks: add // +kubebuilder:subresource:scale"},
		{"e/v1", declared(object + "type Other struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n}"), "pkg/apis/e/v1/types.go: the kind Other has a CustomResourceDefinition and no client: add // +genclient above it"},
		{"g/v1", all(declared("type Branch struct {\n\tBranches []Branch `json:\"branches,omitempty\"`\n}"), field("Branch Branch `json:\"branch\"`")), "artifacts/crd/g.acme.dev_things.yaml: the API server would refuse it: spec.validation.openAPIV3Schema.properties[branch].properties[branches].items.type: Required value"},
		{"h/v1", field("// +kubebuilder:validation:XValidation:rule=\"self.nope > 1\"\nA int32 `json:\"a\"`"), "artifacts/crd/h.acme.dev_things.yaml: the API server would refuse it: spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule: Invalid value"},
		{"i/v1", field("// +kubebuilder:validation:items:XValidation:rule=\"self == oldSelf\"\nA []string `json:\"a\"`"), "make the list a map"},
		{"j/v1", field("// +kubebuilder:validation:XValidation:rule=\"self.all(a, self.all(b, self.all(c, a.contains(b))))\"\nA []string `json:\"a\"`"), "bounds (MaxLength, MaxItems, MaxProperties) on the fields that it reads make a rule cheaper"},
		{"l/v1", []string{"// +groupName", "// +kubebuilder:skip\n// +groupName"}, "pkg/apis/l/v1: no CustomResourceDefinition was made for kind Thing in l.acme.dev/v1"},
	},
	"by the compiler": {
		{"a/v1", field("Names []*string `json:\"names\"`"), "is about the field Thing.Names"},
		{"b/v1", field("Names []*string `json:\"names\"`"), "applyconfiguration-gen can't write this field"},
	},
}

// TestEachMistakeHasAMessage makes mistakes. update must name the file, the type or the field, and
// what to do, and leave the tree unchanged.
func TestEachMistakeHasAMessage(t *testing.T) {
	for name, together := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			c.write("pkg/apis/b/v1/shared/types.go", "package shared\n\n// Ref refers.\ntype Ref struct {\n\tName string `json:\"name\"`\n}\n")
			for _, m := range together {
				if m.dir == "" {
					c.bash(m.edits[0])
				} else {
					c.addAPI(m.dir, m.edits...)
				}
			}
			c.remember()
			out, code := c.run("hack/update-codegen.sh")
			if code == 0 {
				t.Error("exit code 0, want an error")
			}
			for _, m := range together {
				if !strings.Contains(out, m.want) {
					t.Errorf("%s: the output lacks %q", m.dir, m.want)
				}
			}
			for _, useless := range []string{c.home, "ended with status", "exit status", "goroutine"} {
				if strings.Contains(out, useless) {
					t.Errorf("the output has %q", useless)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", out)
			}
			c.wantSame()
		})
	}
}

// addAPI adds a package below pkg/apis with a kind Thing, edited.
func (c *checkout) addAPI(dir string, edits ...string) {
	c.Helper()
	files := map[string]string{
		"doc.go": c.doc(dir),
		"types.go": strings.NewReplacer("'", "`", "Bar", "Thing", "package v1alpha1", "package "+path.Base(dir), "import metav1", "import (\nmetav1", "meta/v1\"\n", "meta/v1\"\n)\n",
			"// +kubebuilder:object:root=true\n", "", "// +kubebuilder:metadata:annotations=\"api-approved.kubernetes.io=unapproved, for a test\"\n", "").Replace(kind),
	}
	for i := 0; i < len(edits); i += 2 {
		found := false
		for name, text := range files {
			if strings.Contains(text, edits[i]) {
				found = true
				files[name] = strings.ReplaceAll(text, edits[i], edits[i+1])
			}
		}
		if !found {
			c.Fatalf("%s has no %q", dir, edits[i])
		}
	}
	for name, text := range files {
		c.write("pkg/apis/"+dir+"/"+name, text)
	}
}

// doc returns the doc.go of a package below pkg/apis.
func (c *checkout) doc(dir string) string {
	c.Helper()
	group, _, _ := strings.Cut(dir, "/")
	return strings.NewReplacer("samplecontroller.k8s.io", group+".acme.dev", "samplecontroller.v1alpha1", strings.ReplaceAll(dir, "/", "."),
		"package v1alpha1", "package "+path.Base(dir)).Replace(c.read(api + "doc.go"))
}
