// SPDX-License-Identifier: Apache-2.0

// Tests of the image's config and contents, of its archive and of the bill of materials.

package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestLabels(t *testing.T) {
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
			image, err := newPlatformImage(row.program)
			must(t, err)
			config, err := image.ConfigFile()
			must(t, err)
			manifest, err := image.Manifest()
			must(t, err)
			if !maps.Equal(config.Config.Labels, row.want) {
				t.Errorf("the labels are %v", config.Config.Labels)
			}
			if !maps.Equal(manifest.Annotations, row.want) {
				t.Errorf("the annotations are %v", manifest.Annotations)
			}
			if created := config.Created.Format(time.RFC3339); created != row.created {
				t.Errorf("the image was created at %s, want %s", created, row.created)
			}
		})
	}
}

func TestSeveralPlatformsMakeAnIndex(t *testing.T) {
	images := newImages(t, "amd64", "arm64")
	index, ok := combine(images).(v1.ImageIndex)
	if !ok {
		t.Fatal("not an index")
	}
	manifest, err := index.IndexManifest()
	must(t, err)
	var platforms []string
	for _, entry := range manifest.Manifests {
		platforms = append(platforms, entry.Platform.String())
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("the index is for %s", got)
	}
	if manifest.Annotations["org.opencontainers.image.revision"] != commit {
		t.Errorf("the index has the annotations %v", manifest.Annotations)
	}
	if _, ok := combine(images[:1]).(v1.Image); !ok {
		t.Error("one platform does not make a plain image")
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
		t.Run(name, func(t *testing.T) {
			p := programFor("amd64")
			row.change(p)
			err := p.check()
			if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if _, err := readProgram("go.mod"); err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("the error for a file that is not a program is %v", err)
	}
}

// newArchive writes an archive of the images, and returns its path and what -verify reads
// from it, with the entry of the archive's index.
func newArchive(t *testing.T, name string, images []*platformImage) (path string, found described, entry v1.Descriptor) {
	t.Helper()
	path, err := write(t.TempDir(), newTag(t, name), images, combine(images))
	must(t, err)
	unpacked := filepath.Join(t.TempDir(), "layout")
	found, err = readArchive(t.Context(), path, unpacked)
	must(t, err)
	index, err := layout.ImageIndexFromPath(unpacked)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	return path, found, manifest.Manifests[0]
}

func TestArchiveOfOnePlatform(t *testing.T) {
	images := newImages(t, "amd64")
	path, fromLayout, entry := newArchive(t, "registry.example.com/team/controller:v1", images)
	for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if entry.Annotations[key] != "registry.example.com/team/controller:v1" {
			t.Errorf("the annotation %s is %q", key, entry.Annotations[key])
		}
	}
	tag := newTag(t, "registry.example.com/team/controller:v1")
	fromDocker, err := tarball.ImageFromPath(path, &tag)
	must(t, err)
	wantConfig, err := images[0].ConfigName()
	must(t, err)
	for reader, image := range map[string]v1.Image{"OCI layout": fromLayout.(v1.Image), "docker-archive": fromDocker} {
		config, err := image.ConfigName()
		must(t, err)
		program, err := programIn(image)
		must(t, err)
		if config != wantConfig || string(program) != "the program for amd64" {
			t.Errorf("%s: the config is %s, want %s, and the program %q", reader, config, wantConfig, program)
		}
	}
}

func TestArchiveOfSeveralPlatforms(t *testing.T) {
	images := newImages(t, "amd64", "arm64")
	path, found, entry := newArchive(t, "controller", images)
	want, err := combine(images).Digest()
	must(t, err)
	if entry.Digest != want {
		t.Errorf("index.json has %+v, want the index %s", entry, want)
	}
	inside, err := imagesIn(found)
	must(t, err)
	for i, image := range inside {
		if program, err := programIn(image); err != nil || string(program) != string(images[i].program.content) {
			t.Errorf("%s: the program is %q (%v)", image.platform, program, err)
		}
	}
	if _, err := tarball.ImageFromPath(path, nil); err == nil || !strings.Contains(err.Error(), "manifest.json") {
		t.Errorf("a manifest.json can't describe several platforms: the error is %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, []string{"sample-controller.tar", "sample-controller_linux_amd64.cdx.json", "sample-controller_linux_arm64.cdx.json"}) {
		t.Errorf("the folder has %v", names)
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"controller":                         "docker.io/library/controller:latest",
		"team/controller:v1":                 "docker.io/team/controller:v1",
		"registry.example.com/controller:v1": "registry.example.com/controller:v1",
		"localhost:5000/controller":          "localhost:5000/controller:latest",
	} {
		if got := fullName(newTag(t, name)); got != want {
			t.Errorf("the full name of %s is %s, want %s", name, got, want)
		}
	}
}

func TestErrorsNameTheArgument(t *testing.T) {
	for arguments, opts := range map[string]options{
		"-folder":        {image: "controller", programs: []string{"p"}},
		"-image":         {folder: "f", programs: []string{"p"}},
		"program":        {image: "controller", folder: "f"},
		"-image=Capital": {image: "Capital", folder: "f", programs: []string{"p"}},
		"no/such":        {image: "controller", folder: "f", programs: []string{"no/such"}},
	} {
		if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), arguments) {
			t.Errorf("%s: the error is %v", arguments, err)
		}
	}
}

func readBOM(t *testing.T, text []byte) cyclonedx.BOM {
	t.Helper()
	var bom cyclonedx.BOM
	must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	return bom
}

func TestBOMListsTheLinkedModules(t *testing.T) {
	text, err := bomOf(programFor("amd64"))
	must(t, err)
	bom := readBOM(t, text)
	main := bom.Metadata.Component
	if main.Name != "example.com/sample-controller" || main.Version != "v1.2.3" || main.Type != cyclonedx.ComponentTypeApplication {
		t.Errorf("it describes %+v", main)
	}
	if bom.Metadata.Timestamp != commitTime {
		t.Errorf("its time is %s, want the commit's", bom.Metadata.Timestamp)
	}
	want := []string{
		"pkg:golang/stdlib@1.26.0",
		"pkg:golang/example.com/one@v1.0.0%2Bincompatible",
		"pkg:golang/example.com/fork@v2.0.1", // replaces example.com/two
	}
	for i, component := range *bom.Components {
		if component.PackageURL != want[i] {
			t.Errorf("component %d is %s, want %s", i, component.PackageURL, want[i])
		}
		if needed := (*(*bom.Dependencies)[0].Dependencies)[i]; needed != component.BOMRef {
			t.Errorf("the program needs %s, which is not the component's reference", needed)
		}
	}
	if len(*bom.Components) != len(want) {
		t.Errorf("%d components", len(*bom.Components))
	}
	// go.sum has the same 32 bytes in base64.
	const sum = "1b8b7d446a0f0db40c2f7f21cff91042296db6d81ddde820d8e0c247c688736a"
	if hashes := (*bom.Components)[1].Hashes; hashes == nil || (*hashes)[0].Value != sum {
		t.Errorf("example.com/one has the hashes %v", hashes)
	}
}

func TestBOMWithoutGit(t *testing.T) {
	text, err := bomOf(withoutGit(programFor("amd64")))
	must(t, err)
	bom := readBOM(t, text)
	if main := bom.Metadata.Component; main.PackageURL != "pkg:golang/example.com/sample-controller" || main.Version != "" {
		t.Errorf("it describes %+v", main)
	}
	if bom.Metadata.Timestamp != "" {
		t.Errorf("its time is %s", bom.Metadata.Timestamp)
	}
}

const (
	commit        = "0123456789abcdef0123456789abcdef01234567"
	commitTime    = "2026-05-04T03:02:01Z"
	dependencySum = "h1:G4t9RGoPDbQML38hz/kQQiltttgd3egg2ODCR8aIc2o="
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
			Deps: []*debug.Module{
				{Path: "example.com/one", Version: "v1.0.0+incompatible", Sum: dependencySum},
				{Path: "example.com/two", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.1"}},
			},
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

func readAll(t *testing.T, from io.ReadCloser, err error) []byte {
	t.Helper()
	must(t, err)
	content, err := io.ReadAll(from)
	must(t, err)
	must(t, from.Close())
	return content
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
