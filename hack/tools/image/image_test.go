// SPDX-License-Identifier: Apache-2.0

// Tests of the image's config and contents.

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
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
		"in a clone":  {programFor(t, "amd64"), ofCommit, commitTime},
		"without git": {withoutGit(programFor(t, "amd64")), always, "1970-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			images, err := partial.FindImages(indexOf(t, row.program), func(v1.Descriptor) bool { return true })
			must(t, err)
			manifest, err := images[0].Manifest()
			must(t, err)
			tag := newTag(t, "controller:v1")
			image, err := tarball.ImageFromPath(row.program.archive(), &tag)
			must(t, err)
			config, err := image.ConfigFile()
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
			// All files are of root and of that time.
			files := []string{"sample-controller 755 21 0 0 " + row.created, "licenses/a/LICENSE 644 4 0 0 " + row.created}
			if got := filesIn(t, image); !slices.Equal(got, files) {
				t.Errorf("the image has the files %q", got)
			}
		})
	}
}

func filesIn(t *testing.T, image v1.Image) []string {
	t.Helper()
	var files []string
	for archive := tar.NewReader(mutate.Extract(image)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		files = append(files, fmt.Sprintf("%s %o %d %d%s %d%s %s",
			h.Name, h.Mode, h.Size, h.Uid, h.Uname, h.Gid, h.Gname, h.ModTime.UTC().Format(time.RFC3339)))
	}
}

// TestDockerfile fails unless the Dockerfile makes the same image: with the same scripts and the Go
// release of go.mod, from scratch, and with the same config except for the labels that depend on the
// commit.
func TestDockerfile(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	must(t, err)
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(mod)
	image, err := newImage(withoutGit(programFor(t, "amd64")))
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
	end := fmt.Sprintf(" && hack/build.sh -release . . /out/sample-controller && hack/licenses.sh . /out/licenses FROM scratch LABEL%s "+
		"COPY --from=build /out / USER %s WORKDIR %s ENTRYPOINT %s", labels, file.Config.User, file.Config.WorkingDir, entrypoint)

	text, err := os.ReadFile("../../../Dockerfile")
	must(t, err)
	text = regexp.MustCompile(`(?m)^#.*\n|\\$`).ReplaceAll(text, nil)
	got := strings.Join(strings.Fields(string(text)), " ")
	if !strings.HasPrefix(got, start) || !strings.HasSuffix(got, end) || len(file.Config.Labels) != 4 {
		t.Errorf("the Dockerfile is\n%s\nwant\n%s...%s", got, start, end)
	}
}

const (
	commit     = "0123456789abcdef0123456789abcdef01234567"
	commitTime = "2026-05-04T03:02:01Z"
)

// programFor returns a program for Linux on the architecture, with the build information
// of a clone whose commit has the tag v1.2.3.
func programFor(t *testing.T, architecture string) *program {
	t.Helper()
	return &program{
		path:     filepath.Join(t.TempDir(), programName),
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

func indexOf(t *testing.T, p *program) v1.ImageIndex {
	t.Helper()
	index, err := newIndex(newTag(t, "controller:v1"), []*program{p})
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
