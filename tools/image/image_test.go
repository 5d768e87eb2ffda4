// SPDX-License-Identifier: Apache-2.0

// Tests of the image's config and contents, and of its archive.

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestConfigAndFiles(t *testing.T) {
	always := map[string]string{
		"org.opencontainers.image.title":       "sample-controller",
		"org.opencontainers.image.description": "Kubernetes controller for Foos",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://example.com/sample-controller",
	}
	ofCommit := maps.Clone(always)
	maps.Copy(ofCommit, map[string]string{
		"org.opencontainers.image.version":  "v1.2.3",
		"org.opencontainers.image.revision": commit,
		"org.opencontainers.image.created":  commitTime,
	})
	for name, row := range map[string]struct {
		program *program
		want    map[string]string
		created string
	}{
		"in a clone":  {programFor("amd64"), ofCommit, commitTime},
		"without git": {withoutGit(programFor("amd64")), always, "1970-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			row.program.licenses = []namedFile{{"licenses/a/LICENSE", []byte("of a")}}
			image, err := newPlatformImage(row.program)
			must(t, err)
			config, err := image.ConfigFile()
			must(t, err)
			manifest, err := image.Manifest()
			must(t, err)
			want := v1.Config{User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/sample-controller"}, Labels: row.want}
			if config.Platform().String() != "linux/amd64" || !reflect.DeepEqual(config.Config, want) {
				t.Errorf("for %s, got %+v", config.Platform(), config.Config)
			}
			if !maps.Equal(manifest.Annotations, row.want) {
				t.Errorf("the annotations are %v", manifest.Annotations)
			}
			if created := config.Created.Format(time.RFC3339); created != row.created {
				t.Errorf("the image was created at %s, want %s", created, row.created)
			}
			wantFiles(t, image, row.created)
		})
	}
}

// wantFiles fails the test unless the image has the program and its license text, and the
// files are of root and of that time.
func wantFiles(t *testing.T, image v1.Image, modified string) {
	t.Helper()
	want := []string{"sample-controller 755 21 0 0 " + modified, "licenses/a/LICENSE 644 4 0 0 " + modified}
	var got []string
	for archive := tar.NewReader(mutate.Extract(image)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		got = append(got, fmt.Sprintf("%s %o %d %d%s %d%s %s",
			h.Name, h.Mode, h.Size, h.Uid, h.Uname, h.Gid, h.Gname, h.ModTime.UTC().Format(time.RFC3339)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the image has the files %q", got)
	}
}

// TestDockerfile fails unless the Dockerfile makes the same image: with the same scripts
// and the Go release of go.mod, from scratch, and with the same config except for the
// labels that depend on the commit. It does not support heredocs.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	must(t, err)
	mod, err := os.ReadFile("../../go.mod")
	must(t, err)
	var lines []string
	code := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), "")
	for line := range strings.Lines(strings.ReplaceAll(code, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(mod)
	const fromRelease = "FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build"
	if len(release) != 2 || lines[0] != "ARG GO_IMAGE=golang:"+string(release[1]) || lines[1] != fromRelease {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s: %q", release, lines)
	}
	from := slices.Index(lines, "FROM scratch")
	const build = " hack/build.sh -stamp . . /out/sample-controller && hack/licenses.sh . /out/licenses"
	if from < 0 || !strings.HasPrefix(lines[from-1], "RUN ") || !strings.HasSuffix(lines[from-1], build) {
		t.Fatalf("the Dockerfile builds differently from make: %q", lines)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, line := range lines[from+1:] {
		switch name, rest, _ := strings.Cut(line, " "); {
		case name == "LABEL":
			for _, match := range regexp.MustCompile(`([^ =]+)="([^"]*)"`).FindAllStringSubmatch(rest, -1) {
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
	image, err := newPlatformImage(withoutGit(programFor("amd64")))
	must(t, err)
	file, err := image.ConfigFile()
	must(t, err)
	if !reflect.DeepEqual(got, file.Config) {
		t.Errorf("the Dockerfile's image has\n%+v\nthat of make image\n%+v", got, file.Config)
	}
}

func TestProgramsThatCannotRunAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*program)
		want   string
	}{
		"good":           {func(*program) {}, ""},
		"another system": {func(p *program) { p.platform.OS = "darwin" }, "is built for darwin/amd64: build it with GOOS=linux"},
		"with C":         {func(p *program) { p.info.Settings[0].Value = "1" }, "build it with CGO_ENABLED=0"},
	} {
		p := programFor("amd64")
		row.change(p)
		if err := p.check(); (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// An archive is an OCI layout of the index. That of one platform is also a docker-archive.
func TestArchive(t *testing.T) {
	for _, architectures := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		images, tag := newImages(t, architectures...), newTag(t, "registry.example.com/team/controller:v1")
		path, err := write(t.TempDir(), tag, images, combine(images))
		must(t, err)
		dir := t.TempDir()
		must(t, exec.CommandContext(t.Context(), "tar", "-xf", path, "-C", dir).Run())
		all, err := layout.ImageIndexFromPath(dir)
		must(t, err)
		top, err := all.IndexManifest()
		must(t, err)
		for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
			if len(top.Manifests) != 1 || top.Manifests[0].Annotations[key] != tag.String() {
				t.Fatalf("the layout has %+v", top.Manifests)
			}
		}
		found, err := all.ImageIndex(top.Manifests[0].Digest)
		must(t, err)
		manifest, err := found.IndexManifest()
		must(t, err)
		if manifest.Annotations["org.opencontainers.image.revision"] != commit {
			t.Errorf("the index has the annotations %v", manifest.Annotations)
		}
		for i, want := range architectures {
			image, err := found.Image(manifest.Manifests[i].Digest)
			must(t, err)
			if program, err := programIn(image); manifest.Manifests[i].Platform.Architecture != want || string(program) != string(images[i].program.content) {
				t.Errorf("%v: the program is %q (%v)", manifest.Manifests[i].Platform, program, err)
			}
		}
		image, err := tarball.ImageFromPath(path, &tag)
		if len(images) > 1 {
			if err == nil || !strings.Contains(err.Error(), "manifest.json") {
				t.Errorf("a manifest.json can't describe several platforms: the error is %v", err)
			}
			continue
		}
		must(t, err)
		if program, err := programIn(image); string(program) != string(images[0].program.content) {
			t.Errorf("as a docker-archive, the program is %q (%v)", program, err)
		}
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"controller":                         "docker.io/library/controller:latest",
		"team/controller:v1":                 "docker.io/team/controller:v1",
		"registry.example.com/controller:v1": "registry.example.com/controller:v1",
	} {
		if got := fullName(newTag(t, name)); got != want {
			t.Errorf("the full name of %s is %s, want %s", name, got, want)
		}
	}
}

func TestErrorsNameTheArgument(t *testing.T) {
	for arguments, opts := range map[string]options{
		"-folder":                     {image: "controller", programs: []string{"p"}},
		"-image=Capital":              {image: "Capital", dir: "f", programs: []string{"p"}},
		"no/such":                     {image: "controller", dir: "f", programs: []string{"no/such"}},
		"build information of go.mod": {image: "controller", dir: "f", programs: []string{"go.mod"}},
		"-image=registry.example.com/controller: must be NAME@sha256:DIGEST": {image: "registry.example.com/controller", claims: true},
	} {
		if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), arguments) {
			t.Errorf("%s: the error is %v", arguments, err)
		}
	}
}

const (
	commit     = "0123456789abcdef0123456789abcdef01234567"
	commitTime = "2026-05-04T03:02:01Z"
)

// programFor returns a program for Linux on the architecture, with the build information
// of a clone whose commit has the tag v1.2.3.
func programFor(architecture string) *program {
	return &program{
		content:  []byte("the program for " + architecture),
		platform: v1.Platform{OS: "linux", Architecture: architecture},
		info: &debug.BuildInfo{
			GoVersion: "go1.26.0 X:some",
			Main:      debug.Module{Path: "example.com/sample-controller", Version: "v1.2.3"},
			Settings: []debug.BuildSetting{
				{Key: "CGO_ENABLED", Value: "0"},
				{Key: "GOARCH", Value: architecture},
				{Key: "GOOS", Value: "linux"},
				{Key: "vcs.revision", Value: commit},
				{Key: "vcs.time", Value: commitTime},
				{Key: "vcs.modified", Value: "false"},
			},
		},
	}
}

// withoutGit changes p into a program that was built outside a clone.
func withoutGit(p *program) *program {
	p.info.Main.Version = "(devel)"
	p.info.Settings = p.info.Settings[:3]
	return p
}

// newImages makes an image of a program for each architecture.
func newImages(t *testing.T, architectures ...string) []*platformImage {
	t.Helper()
	var images []*platformImage
	for _, architecture := range architectures {
		image, err := newPlatformImage(programFor(architecture))
		must(t, err)
		images = append(images, image)
	}
	return images
}

func newTag(t *testing.T, image string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(image)
	must(t, err)
	return tag
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
