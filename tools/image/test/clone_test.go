// SPDX-License-Identifier: Apache-2.0

// Package test makes images as a user does, from clones of this tree, and checks the
// results. The other tests of the module test its functions.
package test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// archiveFile is relative to a clone, programFile to the image's root.
const (
	archiveFile = "_output/image/sample-controller.tar"
	programFile = "/sample-controller"
)

// clone is a folder with the sources and a git repository.
type clone struct {
	*testing.T
	folder string
}

// newClone copies this tree, with uncommitted changes, to a new folder, and commits
// everything in a new repository.
func newClone(t *testing.T) *clone {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	must(t, err)
	c := &clone{T: t, folder: filepath.Join(t.TempDir(), "clone")}
	must(t, os.Mkdir(c.folder, 0o755))
	entries, err := os.ReadDir(root)
	must(t, err)
	for _, entry := range entries {
		from, to := filepath.Join(root, entry.Name()), filepath.Join(c.folder, entry.Name())
		switch {
		case slices.Contains([]string{".git", "bin", "_output"}, entry.Name()):
		case entry.IsDir():
			must(t, os.CopyFS(to, os.DirFS(from)))
		case entry.Type().IsRegular():
			must(t, exec.Command("cp", from, to).Run())
		}
	}
	c.bash("git init --quiet && git add --all && git commit --quiet --message=first")
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
		if !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "IMAGE") && !strings.HasPrefix(name, "MAKE") && name != "MFLAGS" && name != "DOCKER_CONFIG" {
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
	c.bash(`tar -xf "$1" -C "$2"`, archiveFile, folder)
	index, err := layout.ImageIndexFromPath(folder)
	must(c.T, err)
	manifest, err := index.IndexManifest()
	must(c.T, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	must(c.T, err)
	return image
}

// file is a file in a layer.
type file struct {
	tar.Header
	content []byte
}

// files returns the files of the image's only layer.
func files(t *testing.T, image v1.Image) []file {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	if len(layers) != 1 {
		t.Fatalf("%d layers", len(layers))
	}
	unpacked, err := layers[0].Uncompressed()
	must(t, err)
	defer unpacked.Close()
	var all []file
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		all = append(all, file{*header, content})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
