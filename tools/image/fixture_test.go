// SPDX-License-Identifier: Apache-2.0

// Programs and images for the tests.

package main

import (
	"io"
	"runtime/debug"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

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
