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
			image, err := newImage(row.program)
			must(t, err)
			config, err := image.ConfigFile()
			must(t, err)
			manifest, err := image.Manifest()
			must(t, err)
			want := v1.Config{User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/sample-controller"}, Labels: row.want}
			if config.Platform().String() != "linux/amd64" || !reflect.DeepEqual(config.Config, want) {
				t.Errorf("for %s, got %+v", config.Platform(), config.Config)
			}
			maps.Copy(row.want, map[string]string{
				"example.com/sample-controller/go-release": "go1.26.0",
				"example.com/sample-controller/gofips140":  "off",
			})
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

// TestDockerfile fails unless the Dockerfile makes the same image: with the same scripts and the Go
// release of go.mod, from scratch, and with the same config except for the labels that depend on the
// commit.
func TestDockerfile(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	must(t, err)
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(mod)
	image, err := newImage(withoutGit(programFor("amd64")))
	must(t, err)
	file, err := image.ConfigFile()
	must(t, err)
	labels := ""
	for _, name := range []string{"title", "description", "licenses", "source"} {
		labels += fmt.Sprintf(" %s=%q", labelPrefix+name, file.Config.Labels[labelPrefix+name])
	}
	entrypoint, err := json.Marshal(file.Config.Entrypoint)
	must(t, err)
	start := fmt.Sprintf("ARG GO_IMAGE=golang:%s FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build ", release[1])
	end := fmt.Sprintf(" && hack/build.sh -stamp . . /out/sample-controller && hack/licenses.sh . /out/licenses FROM scratch LABEL%s "+
		"COPY --from=build /out / USER %s WORKDIR %s ENTRYPOINT %s", labels, file.Config.User, file.Config.WorkingDir, entrypoint)

	text, err := os.ReadFile("../../Dockerfile")
	must(t, err)
	text = regexp.MustCompile(`(?m)^#.*\n|\\$`).ReplaceAll(text, nil)
	got := strings.Join(strings.Fields(string(text)), " ")
	if !strings.HasPrefix(got, start) || !strings.HasSuffix(got, end) || len(file.Config.Labels) != 4 {
		t.Errorf("the Dockerfile is\n%s\nwant\n%s...%s", got, start, end)
	}
}

// An archive is an OCI layout of the index. That of one platform is also a docker-archive.
func TestArchive(t *testing.T) {
	for _, architectures := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		index, tag := indexFor(t, architectures...), newTag(t, "registry.example.com/team/controller:v1")
		path, _, err := write(t.TempDir(), tag, index)
		must(t, err)
		dir := t.TempDir()
		must(t, exec.CommandContext(t.Context(), "tar", "-xf", path, "-C", dir).Run())
		all, err := layout.ImageIndexFromPath(dir)
		must(t, err)
		top, err := all.IndexManifest()
		must(t, err)
		digest, err := index.Digest()
		must(t, err)
		for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
			if len(top.Manifests) != 1 || top.Manifests[0].Digest != digest || top.Manifests[0].Annotations[key] != tag.String() {
				t.Fatalf("the layout has %+v, want %s", top.Manifests, digest)
			}
		}
		image, err := tarball.ImageFromPath(path, &tag)
		if len(architectures) > 1 {
			if err == nil || !strings.Contains(err.Error(), "manifest.json") {
				t.Errorf("a manifest.json can't describe several platforms: the error is %v", err)
			}
			continue
		}
		must(t, err)
		wantFiles(t, image, commitTime)
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

const (
	commit     = "0123456789abcdef0123456789abcdef01234567"
	commitTime = "2026-05-04T03:02:01Z"
)

// programFor returns a program for Linux on the architecture, with the build information
// of a clone whose commit has the tag v1.2.3.
func programFor(architecture string) *program {
	return &program{
		content:  []byte("the program for " + architecture),
		licenses: []namedFile{{"licenses/a/LICENSE", []byte("of a")}},
		platform: v1.Platform{OS: "linux", Architecture: architecture},
		info: &debug.BuildInfo{
			GoVersion: "go1.26.0 X:some",
			Main:      debug.Module{Path: "example.com/sample-controller", Version: "v1.2.3"},
			Settings: []debug.BuildSetting{
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
	p.info.Settings = p.info.Settings[:2]
	return p
}

// indexFor returns an index of a program for each architecture.
func indexFor(t *testing.T, architectures ...string) v1.ImageIndex {
	t.Helper()
	var programs []*program
	for _, architecture := range architectures {
		programs = append(programs, programFor(architecture))
	}
	index, err := newIndex(programs)
	must(t, err)
	return index
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
