// SPDX-License-Identifier: Apache-2.0

// Tests of archives.

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

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
