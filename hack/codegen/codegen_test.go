// SPDX-License-Identifier: Apache-2.0

// Tests of hack/update-codegen.sh and hack/verify-codegen.sh, in a copy of the tree.

package codegen

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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
	c.replace(betaFile, "// Foo describes", "// Foo, in other words, describes")
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
		"+| `mood` | string | Mood is here for the test. | | |", // and in the reference
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
	c.wantSame(":!pkg/generated", ":!*/zz_generated.*", ":!pkg/apis/*/README.md", ":!artifacts/crd", ":!artifacts/versions")

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
		"misspelled marker":     {api + "doc.go", deepcopy, deepcopy + "// +k8s:defaulting-gen=TypeMeta\n", "unrecognized +k8s: tag(s): +k8s:defaulting-gen"},
		"no CRD":                {api + "doc.go", group, "// +kubebuilder:skip\n" + group, "no CustomResourceDefinition was made for kind Foo"},
		"schema program fails":  {"hack/models-schema/main.go", "func main() {\n", "func main() {\n\tos.Exit(3)\n", "hack/models-schema ended with status"},
		"no API":                {"", "", "", "no API found: expected directories pkg/apis/GROUP/VERSION"},
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
// would silently drop it, because there is no conversion.
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
			"--- v1alpha1",
			"+++ v1beta1",
			"-      replicas:",
			"+      size:",
			"codegen: the versions of a kind can't be served together, see above",
		)
		c.wantSame()
	}
}

// checkout is a copy of the part of the tree that the scripts need, in a directory whose
// name contains spaces. It is a git repository.
type checkout struct {
	*testing.T
	home string // contains dir and an empty GOPATH, GOBIN and temporary directory
	dir  string // the copy
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	home := t.TempDir()
	c := &checkout{T: t, home: home, dir: filepath.Join(home, "a clone & more")}
	for _, dir := range []string{filepath.Join(c.dir, "artifacts"), filepath.Join(home, "gobin"), filepath.Join(home, "tmp")} {
		c.must(os.MkdirAll(dir, 0o755))
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	c.must(err)
	c.bash(`cp -R "$1"/go.mod "$1"/go.sum "$1"/pkg "$1"/hack . && cp -R "$1"/artifacts/crd artifacts && mkdir tools && cp -R "$1"/tools/migrate tools && git init --quiet`, root)
	return c
}

// bash runs a command in the checkout, and returns what it prints.
func (c *checkout) bash(script string, arguments ...string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "bash", append([]string{"-c", script, "bash"}, arguments...)...)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// run calls a script of the checkout with an empty GOPATH, from the file system's root
// directory, and returns its output and its exit code. The module and build caches are
// shared, because without them a run takes minutes. The test fails if the script leaves
// anything in GOBIN, GOPATH/bin or the temporary directory.
func (c *checkout) run(script string) (output string, code int) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Minute)
	defer cancel()
	gopath, gobin, tmp := filepath.Join(c.home, "gopath"), filepath.Join(c.home, "gobin"), filepath.Join(c.home, "tmp")
	caches := strings.Fields(c.bash("go env GOMODCACHE GOCACHE"))
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, script))
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(os.Environ(), "GOPATH="+gopath, "GOBIN="+gobin, "TMPDIR="+tmp, "GOMODCACHE="+caches[0], "GOCACHE="+caches[1])
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		c.Fatalf("%s: %v", script, err)
	}
	for _, dir := range []string{gobin, filepath.Join(gopath, "bin"), tmp} {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			c.Errorf("%s left %s in %s", script, left[0].Name(), dir)
		}
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// remember makes git remember the files of the checkout.
func (c *checkout) remember() {
	c.Helper()
	c.bash("git add --all --force")
}

// wantSame fails the test if a file at one of the paths, or at any, is not as remembered.
func (c *checkout) wantSame(paths ...string) {
	c.Helper()
	if changed := c.bash(`git ls-files --modified --deleted --others -- "$@"`, paths...); changed != "" {
		c.Errorf("these were changed, made or removed:\n%s", changed)
	}
}

// wantLines fails the test if the output lacks one of the lines.
func (c *checkout) wantLines(output string, lines ...string) {
	c.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+output, "\n"+line+"\n") {
			c.Errorf("output lacks the line %q", line)
		}
	}
	if c.Failed() {
		c.Logf("output:\n%s", output)
	}
}

// addVersion copies the hand-written files of an API version to a new one. The old one
// stays the version in which objects are stored.
func (c *checkout) addVersion(from, to string) {
	c.Helper()
	group := filepath.Dir(filepath.Clean(api))
	version := regexp.MustCompile(`(package |\.)` + from + `\b`) // but not the end of an import
	files, err := filepath.Glob(filepath.Join(c.dir, api, "*.go"))
	c.must(err)
	for _, file := range files {
		if name := filepath.Base(file); !strings.HasPrefix(name, "zz_generated.") {
			c.write(group+"/"+to+"/"+name, version.ReplaceAllString(c.read(api+name), "${1}"+to))
		}
	}
	c.replace(typesFile, "// +genclient\n", "// +genclient\n// +kubebuilder:storageversion\n")
	c.write(group+"/versions.yaml", "crd: foos.samplecontroller.k8s.io\nold: "+from+"\nnew: "+to+"\n")
}

// kind is a type of an API, without a status, printer columns or a short name.
const kind = `package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for a test"

// Bar is here for the test.
type Bar struct {
	metav1.TypeMeta   'json:",inline"'
	metav1.ObjectMeta 'json:"metadata,omitempty"'
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// BarList is here for the test.
type BarList struct {
	metav1.TypeMeta 'json:",inline"'
	metav1.ListMeta 'json:"metadata"'

	Items []Bar 'json:"items"'
}
`

func (c *checkout) read(file string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, file))
	c.must(err)
	return string(text)
}

func (c *checkout) write(file, text string) {
	c.Helper()
	path := filepath.Join(c.dir, file)
	c.must(os.MkdirAll(filepath.Dir(path), 0o755))
	c.must(os.WriteFile(path, []byte(text), 0o644))
}

// replace replaces the first occurrence of from in the file. It fails the test if there
// is none, because the test would then prove nothing.
func (c *checkout) replace(file, from, to string) {
	c.Helper()
	text := c.read(file)
	if !strings.Contains(text, from) {
		c.Fatalf("%s lacks %q: the test has to make another change", file, from)
	}
	c.write(file, strings.Replace(text, from, to, 1))
}

// must ends the test if err is not nil.
func (c *checkout) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}
