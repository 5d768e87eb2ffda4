// SPDX-License-Identifier: Apache-2.0

// Package test makes images as a user does, from clones of this tree, and checks the
// results. The other tests of the module test its functions and its scripts.
package test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// commitTime is the time of the commits in the clones.
const commitTime = "2026-05-04T03:02:01Z"

func TestImage(t *testing.T) {
	first := newClone(t)
	printed := first.bash("make image")
	image := first.image()
	digest, err := image.Digest()
	must(t, err)
	if !strings.Contains(printed, "sample-controller:latest@"+digest.String()) {
		t.Errorf("make image prints %q, want the digest %s", printed, digest)
	}

	t.Run("same bytes from another clone and environment", func(t *testing.T) {
		second := first.clone("another clone & more")
		second.bash(`umask 077; export GOFLAGS=-tags=other GOAMD64=v3 TZ=Asia/Kolkata GOENV="$1"; unset LANG; go env -w GOEXPERIMENT=fieldtrack; make image`, filepath.Join(t.TempDir(), "env"))
		for _, path := range []string{"_output/image/sample-controller.tar", "_output/image/sample-controller_linux_" + runtime.GOARCH + ".cdx.json"} {
			if !bytes.Equal(first.read(path), second.read(path)) {
				t.Errorf("%s differs", path)
			}
		}
	})
	t.Run("the license texts of this project, of Go, and of each module", func(t *testing.T) {
		var texts []string
		unpacked := mutate.Extract(image)
		defer unpacked.Close()
		for archive := tar.NewReader(unpacked); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if header.Size > 0 {
				texts = append(texts, header.Name)
			}
		}
		for _, part := range append(first.modules(), strings.TrimSpace(first.bash("go list -m")), "go@"+runtime.Version()) {
			if !slices.ContainsFunc(texts, func(path string) bool { return strings.HasPrefix(path, "licenses/"+part+"/LICENSE") }) {
				t.Errorf("the image has no license text of %s", part)
			}
		}
	})
	t.Run("Docker's context has what git has", func(t *testing.T) {
		// Git evaluates the patterns, with a slash before each, because they are relative to
		// the top folder, unlike those of a .gitignore.
		first.bash(`sed -E '/^(#|!|$|\*\*\/)/! s|^/?|/|' .dockerignore >.git/patterns`)
		if kept := first.bash("git ls-files --cached --ignored --exclude-from=.git/patterns"); kept != "" {
			t.Errorf(".dockerignore excludes these files, so that the program's version would end with +dirty:\n%s", kept)
		}
		if sent := first.bash("git ls-files --others --directory --exclude-from=.git/patterns"); sent != "" {
			t.Errorf(".dockerignore does not exclude these files, which git does not have:\n%s", sent)
		}
	})
}

// modules returns what the go command lists for the program, as MODULE@VERSION.
func (c *clone) modules() []string {
	c.Helper()
	listed := c.bash(`go version -m "_output/image/linux_$1/sample-controller"`, runtime.GOARCH)
	var all []string
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); fields[0] == "dep" {
			all = append(all, fields[1]+"@"+fields[2])
		}
	}
	if len(all) < 10 {
		c.Errorf("only %d modules in the program: %s", len(all), listed)
	}
	return all
}

// versionOf returns Go's pseudo-version of a commit without a tag. Its major version is
// that of the module's path.
func versionOf(t *testing.T, commit string) string {
	t.Helper()
	mod, err := os.ReadFile("../../../go.mod")
	must(t, err)
	major := "v0"
	if match := regexp.MustCompile(`(?m)^module .*/(v[0-9]+)$`).FindSubmatch(mod); match != nil {
		major = string(match[1])
	}
	at, err := time.Parse(time.RFC3339, commitTime)
	must(t, err)
	return major + ".0.0-" + at.Format("20060102150405") + "-" + commit[:12]
}

func TestVerifyImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/controller"
	c := newClone(t)
	// Whoever tests may have an older Go than a release needs.
	_, stderr, err := c.try(`export GOTOOLCHAIN=local; go mod edit -toolchain=go1.9999 && git commit --quiet --all --message=newer && make push-image IMAGE="$1:v1" IMAGE_PLATFORMS="linux/$(go env GOHOSTARCH)"`, repository)
	if err == nil || !strings.Contains(stderr, "lacks fixes of go1.9999") {
		t.Errorf("a push of a program of an older Go: %v\n%s", err, stderr)
	}
	c.bash(`GOTOOLCHAIN=local go mod edit -toolchain=none && git commit --quiet --all --message="any release"`)
	commit := strings.TrimSpace(c.bash("git rev-parse HEAD"))
	c.bash(`make push-image IMAGE="$1:v1" IMAGE_PLATFORMS="linux/$(go env GOHOSTARCH)"`, repository)
	tag, err := name.NewTag(repository + ":v1")
	must(t, err)
	image, err := remote.Image(tag)
	must(t, err)
	digest, err := image.Digest()
	must(t, err)
	// The clone is at another commit now; the image's commit is verified.
	c.bash("git tag v1.9.9 && git commit --quiet --allow-empty --message=second && touch new && git rm --quiet main.go")

	t.Run("an unchanged image is verified", func(t *testing.T) {
		printed := c.bash(`make verify-image IMAGE="$1:v1@$2"`, repository, digest.String())
		if !strings.Contains(printed, "names commit "+commit) || !strings.Contains(printed, "Verified: the commit makes "+digest.String()) {
			t.Errorf("make verify-image prints\n%s", printed)
		}
	})
	t.Run("another entry point is reported", func(t *testing.T) {
		file, err := image.ConfigFile()
		must(t, err)
		config := *file.Config.DeepCopy()
		config.Entrypoint = []string{"/etc/sh"}
		other, err := mutate.Config(image, config)
		must(t, err)
		must(t, remote.Write(tag.Context().Tag("other"), other))
		otherDigest, err := other.Digest()
		must(t, err)
		stdout, stderr, err := c.try(`make verify-image IMAGE="$1@$2"`, repository, otherDigest.String())
		if want := "@" + otherDigest.String() + " is not what its commit makes, which is " + digest.String(); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("make verify-image does not print %q (%v):\n%s%s", want, err, stdout, stderr)
		}
	})
	t.Run("a changed tree is not pushed over the image, even with FORCE in the environment", func(t *testing.T) {
		c.bash("git checkout --quiet --force v1.9.9 && touch new")
		_, stderr, err := c.try(`FORCE=1 make push-image IMAGE="$1:v1" IMAGE_PLATFORMS="linux/$(go env GOHOSTARCH)"`, repository)
		if err == nil || !strings.Contains(stderr, "the tree has changes that are not in commit "+commit) || !strings.Contains(stderr, "the tag is taken by "+digest.String()) {
			t.Errorf("make push-image prints (%v)\n%s", err, stderr)
		}
	})
}

// TestBuild builds the program from a clone, and from sources that are not a clean clone.
// The build must succeed, and must not take the commit of another repository.
func TestBuild(t *testing.T) {
	first := newClone(t)
	commit := strings.TrimSpace(first.bash("git rev-parse HEAD"))
	unknownCommit := []string{"not built in a git clone"}
	for name, row := range map[string]struct {
		prepare string
		want    []string
	}{
		"a clone":                         {"true", []string{versionOf(t, commit) + "\n", commit + "\n", commitTime, runtime.Version()}},
		"a changed tree":                  {"touch new", []string{"+dirty\n", commit + ", with uncommitted changes\n"}},
		"sources without .git":            {"rm -rf .git", unknownCommit},
		"sources in another's repository": {"rm -rf .git && cd .. && git init --quiet && git commit --quiet --allow-empty --message=other", unknownCommit},
		"a repository without a commit":   {"rm -rf .git && git init -q && git add --all", unknownCommit},
		"a clone that belongs to another": {"chown -R 65532 .", unknownCommit},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(row.prepare, "chown") && os.Geteuid() != 0 {
				t.Skip("only root can give a clone away")
			}
			c := (&clone{T: t, folder: first.folder}).clone("source")
			c.bash(row.prepare)
			version := c.bash("hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
			for _, part := range row.want {
				if !strings.Contains(version, part) {
					t.Errorf("-version does not print %q:\n%s", part, version)
				}
			}
		})
	}
}

// clone is a folder with the sources and a git repository.
type clone struct {
	*testing.T
	folder string
}

// newClone copies this tree, with uncommitted changes, to a new folder, and commits
// everything in a new repository.
func newClone(t *testing.T) *clone {
	t.Helper()
	c := &clone{T: t, folder: t.TempDir()}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	must(t, err)
	c.bash(`for path in "$1"/* "$1"/.[!.]*; do
  case "${path##*/}" in .git | bin | _output) ;; *) cp -R "${path}" . ;; esac
done
git init --quiet; git add --all; git commit --quiet --message=first`, root)
	return c
}

// clone makes another clone of the commit, at the path name.
func (c *clone) clone(name string) *clone {
	c.Helper()
	other := &clone{T: c.T, folder: filepath.Join(c.TempDir(), name)}
	c.bash(`git clone --quiet . "$1"`, other.folder)
	return other
}

// bash runs a script in the clone, and returns what it printed.
func (c *clone) bash(script string, arguments ...string) string {
	c.Helper()
	stdout, stderr, err := c.try(script, arguments...)
	if err != nil {
		c.Fatalf("%s: %v\n%s%s", script, err, stdout, stderr)
	}
	return stdout
}

// try runs a script that may fail. It removes the variables of the make that runs this
// test, and the user's settings of git and Docker.
func (c *clone) try(script string, arguments ...string) (stdout, stderr string, err error) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "bash", append([]string{"-o", "errexit", "-c", script, "bash"}, arguments...)...)
	cmd.Dir = c.folder
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !regexp.MustCompile(`^(GIT_.*|IMAGE.*|MAKE.*|MFLAGS)$`).MatchString(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "DOCKER_CONFIG=/nonexistent",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE=2026-05-04T03:02:01Z",
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_DATE=2026-05-04T05:02:01+02:00")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

func (c *clone) read(path string) []byte {
	c.Helper()
	content, err := os.ReadFile(filepath.Join(c.folder, path))
	must(c.T, err)
	return content
}

// image reads the image that make has made, as an OCI layout.
func (c *clone) image() v1.Image {
	c.Helper()
	folder := c.TempDir()
	c.bash(`tar -xf _output/image/sample-controller.tar -C "$1"`, folder)
	index, err := layout.ImageIndexFromPath(folder)
	must(c.T, err)
	manifest, err := index.IndexManifest()
	must(c.T, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	must(c.T, err)
	return image
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
