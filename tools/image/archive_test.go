// SPDX-License-Identifier: Apache-2.0

// Tests of archives.

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// newArchive writes an archive of the images, and returns its path and the path of a
// folder with its files.
func newArchive(t *testing.T, name string, images []*platformImage) (path, unpacked string) {
	t.Helper()
	folder := t.TempDir()
	path, err := write(folder, newTag(t, name), images, combine(images))
	must(t, err)
	if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) > 0 {
		t.Errorf("write left %v behind", left)
	}
	unpacked = t.TempDir()
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return path, unpacked
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		target := filepath.Join(unpacked, filepath.FromSlash(header.Name))
		must(t, os.MkdirAll(filepath.Dir(target), 0o755))
		must(t, os.WriteFile(target, content, 0o600))
	}
}

// entries returns the entries of the index.json in the folder of a layout.
func entries(t *testing.T, folder string) (v1.ImageIndex, []v1.Descriptor) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	return index, manifest.Manifests
}

func TestArchiveOfOnePlatform(t *testing.T) {
	images := newImages(t, "amd64")
	want, err := images[0].Digest()
	must(t, err)
	path, unpacked := newArchive(t, "registry.example.com/team/controller:v1", images)

	index, found := entries(t, unpacked)
	if len(found) != 1 || found[0].Digest != want {
		t.Fatalf("index.json has %+v, want only the image", found)
	}
	for _, key := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if found[0].Annotations[key] != "registry.example.com/team/controller:v1" {
			t.Errorf("the annotation %s is %q", key, found[0].Annotations[key])
		}
	}
	fromLayout, err := index.Image(want)
	must(t, err)
	tag := newTag(t, "registry.example.com/team/controller:v1")
	fromDocker, err := tarball.ImageFromPath(path, &tag)
	must(t, err)
	for reader, image := range map[string]v1.Image{"OCI layout": fromLayout, "docker-archive": fromDocker} {
		config, err := image.ConfigName()
		must(t, err)
		wantConfig, err := images[0].ConfigName()
		must(t, err)
		if config != wantConfig {
			t.Errorf("%s: the config is %s, want %s", reader, config, wantConfig)
		}
		layers, err := image.Layers()
		must(t, err)
		if len(layers) != 1 {
			t.Fatalf("%s: %d layers", reader, len(layers))
		}
		files, err := layers[0].Uncompressed()
		if !bytes.Contains(readAll(t, files, err), []byte("the program for amd64")) {
			t.Errorf("%s: the layer lacks the program", reader)
		}
	}
}

func TestArchiveOfSeveralPlatforms(t *testing.T) {
	images := newImages(t, "amd64", "arm64")
	want, err := combine(images).Digest()
	must(t, err)
	_, unpacked := newArchive(t, "controller", images)
	index, found := entries(t, unpacked)
	if len(found) != 1 || found[0].Digest != want {
		t.Fatalf("index.json has %+v, want only the index", found)
	}
	inner, err := index.ImageIndex(want)
	must(t, err)
	for _, image := range images {
		digest, err := image.Digest()
		must(t, err)
		found, err := inner.Image(digest)
		must(t, err)
		layers, err := found.Layers()
		must(t, err)
		content, err := layers[0].Compressed()
		if len(readAll(t, content, err)) == 0 {
			t.Errorf("%v is not in the archive", image.program.platform)
		}
	}
	if _, err := os.Stat(filepath.Join(unpacked, "manifest.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a manifest.json, which can't describe several platforms (%v)", err)
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

func TestWriteLeavesOnlyItsFiles(t *testing.T) {
	path, _ := newArchive(t, "controller", newImages(t, "amd64", "arm64"))
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	must(t, err)
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	want := []string{"sample-controller.tar", "sample-controller_linux_amd64.cdx.json", "sample-controller_linux_arm64.cdx.json"}
	if !slices.Equal(names, want) {
		t.Errorf("the folder has %v", names)
	}
}
