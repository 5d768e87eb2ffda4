// SPDX-License-Identifier: Apache-2.0

// Tests of make verify-image, of the Dockerfile, of the recipes for users, and of the
// version.

package test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

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
		if worktree := c.bash("git worktree list; git stash list; git status --short"); strings.Count(worktree, "\n") != 3 {
			t.Errorf("the clone was changed:\n%s", worktree)
		}
	})
	t.Run("another entry point is reported", func(t *testing.T) {
		other := withEntrypoint(t, image, "/etc/sh")
		must(t, remote.Write(tag.Context().Tag("other"), other))
		otherDigest, err := other.Digest()
		must(t, err)
		stdout, stderr, err := c.try(`make verify-image IMAGE="$1@$2"`, repository, otherDigest.String())
		platform := "linux/" + runtime.GOARCH
		for _, part := range []string{" is not what commit " + commit + " makes, which is " + digest.String(), platform + ": image is " + otherDigest.String(), platform + ": config is "} {
			if err == nil || !strings.Contains(stderr, part) {
				t.Errorf("make verify-image does not print %q (%v):\n%s%s", part, err, stdout, stderr)
			}
		}
		if strings.Contains(stderr, "layer 1") {
			t.Errorf("make verify-image reports the layer, which is the same:\n%s", stderr)
		}
	})
	t.Run("a changed tree is not pushed over the image, even with FORCE in the environment", func(t *testing.T) {
		c.bash("git checkout --quiet --force v1.9.9 && touch new")
		_, stderr, err := c.try(`FORCE=1 make push-image IMAGE="$1:v1" IMAGE_PLATFORMS="linux/$(go env GOHOSTARCH)"`, repository)
		if err == nil || !strings.Contains(stderr, "the tree has changes that are not in commit "+commit) || !strings.Contains(stderr, "the tag is taken by "+digest.String()) {
			t.Errorf("make push-image prints (%v)\n%s", err, stderr)
		}
		head, err := remote.Head(tag)
		must(t, err)
		if head.Digest != digest {
			t.Errorf("the tag is now %s", head.Digest)
		}
	})
}

// withEntrypoint returns the image with another entry point.
func withEntrypoint(t *testing.T, image v1.Image, path string) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	must(t, err)
	config := *file.Config.DeepCopy()
	config.Entrypoint = []string{path}
	other, err := mutate.Config(image, config)
	must(t, err)
	return other
}

// label matches a label in a LABEL instruction.
var label = regexp.MustCompile(`([^ =]+)="([^"]*)"`)

// dockerfile returns the instructions of the Dockerfile, one per line, without comments
// and unnecessary blanks. It does not support heredocs.
func (c *clone) dockerfile() []string {
	c.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(c.read("Dockerfile")), "")
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantSameByDocker fails the test unless the Dockerfile's last stage is like the image:
// from scratch, with what the script builds, and with the same config except for the labels
// that depend on the commit.
func wantSameByDocker(t *testing.T, lines []string, image v1.Image) {
	t.Helper()
	from := slices.Index(lines, "FROM scratch")
	if from < 0 {
		t.Fatalf("no stage of the Dockerfile is from scratch: %q", lines)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, line := range lines[from+1:] {
		switch name, rest, _ := strings.Cut(line, " "); {
		case name == "LABEL":
			for _, match := range label.FindAllStringSubmatch(rest, -1) {
				got.Labels[match[1]] = match[2]
			}
		case name == "USER":
			got.User = rest
		case name == "WORKDIR":
			got.WorkingDir = rest
		case name == "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &got.Entrypoint); err != nil {
				t.Errorf("the entry point %s needs a shell, which the image lacks: %v", rest, err)
			}
		case line != "COPY --from=build /out /":
			t.Errorf("the Dockerfile has %s, which make image does not support", line)
		}
	}
	file, err := image.ConfigFile()
	must(t, err)
	want := file.Config
	for _, ofCommit := range []string{"version", "revision", "created"} {
		delete(want.Labels, "org.opencontainers.image."+ofCommit)
	}
	if got.User != want.User || got.WorkingDir != want.WorkingDir || !slices.Equal(got.Entrypoint, want.Entrypoint) || !maps.Equal(got.Labels, want.Labels) {
		t.Errorf("the Dockerfile's image has\n%+v\nthat of make image\n%+v", got, want)
	}
}

// wantBuiltByScript fails the test unless the Dockerfile builds with the same scripts as
// make, and with the Go release of go.mod's toolchain line.
func wantBuiltByScript(t *testing.T, c *clone, lines []string) {
	t.Helper()
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(c.read("go.mod"))
	if len(release) != 2 || !slices.Contains(lines, "ARG GO_IMAGE=golang:"+string(release[1])) ||
		!slices.Contains(lines, "FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build") {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s: %q", release, lines)
	}
	built := slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "RUN ") && strings.HasSuffix(line, " hack/build.sh -stamp . . /out"+programFile+" && hack/licenses.sh . /out/licenses")
	})
	if !built {
		t.Errorf("the Dockerfile builds differently from make: %q", lines)
	}
}

// wantWholeContext fails the test if .dockerignore excludes a file that git has. Git
// evaluates the patterns, with a slash before each, because they are relative to the top
// folder, unlike those of a .gitignore.
func wantWholeContext(t *testing.T, c *clone) {
	t.Helper()
	c.bash(`sed -E '/^(#|!|$|\*\*\/)/! s|^/?|/|' .dockerignore >.git/patterns`)
	if kept := c.bash("git ls-files --cached --ignored --exclude-from=.git/patterns"); kept != "" {
		t.Errorf(".dockerignore excludes these files, so that the program's version would end with +dirty:\n%s", kept)
	}
	if sent := c.bash("git ls-files --others --directory --exclude-from=.git/patterns"); sent != "" {
		t.Errorf(".dockerignore does not exclude these files, which git does not have:\n%s", sent)
	}
}

// printer stands for hack/build.sh and hack/licenses.sh. The programs that it makes print their arguments.
const printer = `#!/usr/bin/env bash
mkdir -p "$(dirname "${!#}")"
printf '#!/usr/bin/env bash\nprintf "%%s\\n" "$@"\n' >"${!#}"
chmod +x "${!#}"
`

// newRecipes returns a tree that has nothing but the recipes and their scripts.
func newRecipes(t *testing.T) *clone {
	t.Helper()
	c := &clone{T: t, folder: t.TempDir()}
	root := filepath.Join("..", "..", "..")
	for _, path := range []string{"Makefile", "tools/image/targets.mk", "hack/image.sh", "hack/install-yaml.sh", "hack/build.sh", "hack/licenses.sh", "bin/devcluster"} {
		text := []byte(printer)
		if !slices.Contains([]string{"hack/build.sh", "hack/licenses.sh", "bin/devcluster"}, path) {
			var err error
			text, err = os.ReadFile(filepath.Join(root, path))
			must(t, err)
		}
		must(t, os.MkdirAll(filepath.Join(c.folder, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(c.folder, path), text, 0o755))
	}
	return c
}

// TestTheNameOfAnImageIsNoCode passes names that a branch or a tag can have.
func TestTheNameOfAnImageIsNoCode(t *testing.T) {
	c := newRecipes(t)
	for _, name := range []string{`x:"; touch ran; "`, "x:`touch ran`", "x:$(touch ran)", "x:$$(touch ran)", "x:$(shell touch ran)", "x:'; touch ran; '"} {
		for _, target := range []string{"image", "push-image", "verify-image", "install-yaml"} {
			for _, script := range []string{`make "$1" IMAGE="$2"`, `IMAGE="$2" make "$1"`, `make "$1" IMAGE=x IMAGE_PLATFORMS="$2"`} {
				printed, _, err := c.try(script, target, name)
				if _, missing := os.Stat(filepath.Join(c.folder, "ran")); missing == nil {
					t.Fatalf("%s: make %s runs %s", script, target, name)
				}
				isRefused := target == "install-yaml" || strings.Contains(script, "PLATFORMS")
				if target != "verify-image" && (err != nil) != isRefused || !isRefused && !strings.Contains(printed, "-image="+name+"\n") {
					t.Errorf("%s: make %s with %s: %v\n%s", script, target, name, err, printed)
				}
			}
		}
	}
}

func TestPlatforms(t *testing.T) {
	c := newRecipes(t)
	for script, want := range map[string][]string{
		"make push-image IMAGE=x:1":                             {"linux_amd64", "linux_arm64"},
		"make push-image IMAGE=x:1 IMAGE_PLATFORMS=linux/s390x": {"linux_s390x"},
		"make image": {"linux_" + strings.TrimSpace(c.bash("go env GOHOSTARCH"))},
	} {
		var platforms []string
		for line := range strings.Lines(c.bash(script)) {
			if folder, ok := strings.CutSuffix(line, "/sample-controller\n"); ok {
				platforms = append(platforms, filepath.Base(folder))
			}
		}
		if !slices.Equal(platforms, want) {
			t.Errorf("%s makes programs for %v, not %v", script, platforms, want)
		}
	}
}

const unknownCommit = "not built in a git clone"

// TestBuildWithoutACommit builds the program from sources without a repository of their
// own. The build must succeed, and must not take the commit of another repository.
func TestBuildWithoutACommit(t *testing.T) {
	first := newClone(t)
	for name, row := range map[string]struct {
		prepare string
		asRoot  bool
	}{
		"sources without .git":            {"rm -rf .git", false},
		"sources in another's repository": {"rm -rf .git && cd .. && git init --quiet && git commit --quiet --allow-empty --message=other", false},
		"a repository without a commit":   {"rm -rf .git && git init -q && git add --all", false},
		"a clone that belongs to another": {"chown -R 65532 .", true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.asRoot && os.Geteuid() != 0 {
				t.Skip("only root can give a clone away")
			}
			c := (&clone{T: t, folder: first.folder}).clone("source")
			c.bash(row.prepare)
			version := c.bash("hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
			if !strings.Contains(version, unknownCommit) {
				t.Errorf("-version prints\n%s", version)
			}
		})
	}
}

func TestBuildOfAChangedTree(t *testing.T) {
	c := newClone(t)
	commit := strings.TrimSpace(c.bash("git rev-parse HEAD"))
	version := c.bash("touch new && hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
	for _, part := range []string{"+dirty\n", commit + ", with uncommitted changes\n"} {
		if !strings.Contains(version, part) {
			t.Errorf("-version does not print %q:\n%s", part, version)
		}
	}
}

// TestCallerChoosesTheCryptographicModule sets GOFIPS140, which decides which of Go's
// cryptographic modules is in the program.
func TestCallerChoosesTheCryptographicModule(t *testing.T) {
	c := newClone(t)
	c.bash("GOFIPS140=latest make image")
	info, err := buildinfo.Read(bytes.NewReader(files(t, c.image())[0].content))
	must(t, err)
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "GOFIPS140", Value: "latest"}) {
		t.Errorf("the program was built with %v, want GOFIPS140=latest", info.Settings)
	}
}
