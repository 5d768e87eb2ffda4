// SPDX-License-Identifier: Apache-2.0

// Tests of the image's config and contents.

package main

import (
	"maps"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
