// SPDX-License-Identifier: Apache-2.0

// The fixture of the tests: a copy of the tree, and what the tests do with it.

package codegen

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// checkout is a copy of the part of the tree that the scripts need, in a folder whose
// name contains spaces.
type checkout struct {
	*testing.T
	home string // contains dir and an empty GOPATH, GOBIN and temporary folder
	dir  string // the copy
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	home := t.TempDir()
	c := &checkout{T: t, home: home, dir: filepath.Join(home, "a clone & more")}
	for _, path := range []string{"go.mod", "go.sum", "pkg", "hack", "artifacts/crd"} {
		c.copyFrom(filepath.Join("..", ".."), path)
	}
	return c
}

// with returns the checkout for use in a subtest.
func (c *checkout) with(t *testing.T) *checkout {
	return &checkout{T: t, home: c.home, dir: c.dir}
}

// run calls a script of the checkout with an empty GOPATH, from the file system's root
// folder, and returns its output and its exit code. The module and build caches are
// shared, because without them a run takes minutes. The test fails if the script leaves
// anything in GOBIN, GOPATH/bin or the temporary folder.
func (c *checkout) run(script string) (output string, code int) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Minute)
	defer cancel()
	gopath, gobin, tmp := filepath.Join(c.home, "gopath"), filepath.Join(c.home, "gobin"), filepath.Join(c.home, "tmp")
	c.must(os.MkdirAll(gobin, 0o755))
	c.must(os.MkdirAll(tmp, 0o755))
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, script))
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(os.Environ(), "GOPATH="+gopath, "GOBIN="+gobin, "TMPDIR="+tmp,
		"GOMODCACHE="+c.goEnv("GOMODCACHE"), "GOCACHE="+c.goEnv("GOCACHE"))
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

func (c *checkout) goEnv(name string) string {
	c.Helper()
	out, err := exec.Command("go", "env", name).Output()
	c.must(err)
	return strings.TrimSpace(string(out))
}

// snapshot returns the hash of each file by its path; folders end in a slash.
func (c *checkout) snapshot() map[string][32]byte {
	c.Helper()
	files := map[string][32]byte{}
	c.must(fs.WalkDir(os.DirFS(c.dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			files[path+"/"] = [32]byte{}
			return err
		}
		files[path] = sha256.Sum256([]byte(c.read(path)))
		return nil
	}))
	return files
}

// wantSame fails the test if the checkout has changed since the snapshot before.
func (c *checkout) wantSame(before map[string][32]byte) {
	c.Helper()
	after := c.snapshot()
	for path := range after {
		if _, found := before[path]; !found {
			c.Errorf("%s was made", path)
		}
	}
	for path, sum := range before {
		if now, found := after[path]; !found || now != sum {
			c.Errorf("%s was changed or removed", path)
		}
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

// wantInFile fails the test if the file lacks one of the texts.
func (c *checkout) wantInFile(file string, parts ...string) {
	c.Helper()
	text := c.read(file)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.Errorf("%s lacks %q", file, part)
		}
	}
}

// wantAbsent fails the test if one of the paths exists.
func (c *checkout) wantAbsent(paths ...string) {
	c.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(c.dir, path)); !errors.Is(err, fs.ErrNotExist) {
			c.Errorf("%s exists (%v), and should not", path, err)
		}
	}
}

// addVersion copies the hand-written files of an API version to a new one. The old one
// stays the version in which objects are stored.
func (c *checkout) addVersion(from, to string) {
	c.Helper()
	group := filepath.Dir(filepath.Clean(api))
	version := regexp.MustCompile(`(package |\.)` + from + `\b`) // but not the end of an import
	for path := range maps.Keys(c.snapshot()) {
		if filepath.Dir(path) == group+"/"+from && strings.HasSuffix(path, ".go") && !generated(path) {
			c.write(group+"/"+to+"/"+filepath.Base(path), version.ReplaceAllString(c.read(path), "${1}"+to))
		}
	}
	c.replace(typesFile, "// +genclient\n", "// +genclient\n// +kubebuilder:storageversion\n")
}

// addKind adds a kind to an API, without a status, printer columns or a short name.
func (c *checkout) addKind(folder, kind string) {
	c.Helper()
	c.write(folder+strings.ToLower(kind)+".go", strings.ReplaceAll(`package `+filepath.Base(folder)+`

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for a test"

// KIND is here for the test.
type KIND struct {
	metav1.TypeMeta   `+"`json:\",inline\"`"+`
	metav1.ObjectMeta `+"`json:\"metadata,omitempty\"`"+`

	// +optional
	Spec KINDSpec `+"`json:\"spec,omitempty\"`"+`
}

// KINDSpec is here for the test.
type KINDSpec struct {
	// Size is here for the test.
	// +optional
	Size *int32 `+"`json:\"size,omitempty\"`"+`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// KINDList is here for the test.
type KINDList struct {
	metav1.TypeMeta `+"`json:\",inline\"`"+`
	metav1.ListMeta `+"`json:\"metadata\"`"+`

	Items []KIND `+"`json:\"items\"`"+`
}
`, "KIND", kind))
}

// generated reports whether the scripts generate the file or folder at path.
func generated(path string) bool {
	return regexp.MustCompile(`^pkg/generated/|/zz_generated\.|^artifacts/crd/`).MatchString(path)
}

func (c *checkout) copyFrom(root, path string) {
	c.Helper()
	from, to := filepath.Join(root, path), filepath.Join(c.dir, path)
	info, err := os.Stat(from)
	c.must(err)
	c.must(os.MkdirAll(filepath.Dir(to), 0o755))
	if info.IsDir() {
		c.must(os.CopyFS(to, os.DirFS(from)))
		return
	}
	text, err := os.ReadFile(from)
	c.must(err)
	c.must(os.WriteFile(to, text, info.Mode()))
}

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

// removeLines removes the lines of the file that start with prefix.
func (c *checkout) removeLines(file, prefix string) {
	c.Helper()
	lines := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(prefix) + `.*\n`)
	text := c.read(file)
	if !lines.MatchString(text) {
		c.Fatalf("%s has no line with %q: the test has to make another change", file, prefix)
	}
	c.write(file, lines.ReplaceAllString(text, ""))
}

func (c *checkout) remove(path string) {
	c.Helper()
	full := filepath.Join(c.dir, path)
	if _, err := os.Lstat(full); err != nil {
		c.Fatal(err)
	}
	c.must(os.RemoveAll(full))
}

// must ends the test if err is not nil.
func (c *checkout) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}
