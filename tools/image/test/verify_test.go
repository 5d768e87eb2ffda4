// SPDX-License-Identifier: Apache-2.0

// Tests of make verify-image.

package test

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// inProgram is a text in the program that is not a part of the build information.
const inProgram = "Starting workers"

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
	t.Run("a changed program, entry point and layer are reported", func(t *testing.T) {
		wantRefused(t, c, tampered(t, image), tag,
			`file "sample-controller" differs in 1 of `,
			`"Entrypoint" is ["/etc/sh","/sample-controller"], the commit makes ["/sample-controller"]`,
			`layer 2: file "etc/sh", 4 bytes: the commit does not make it`)
	})
	t.Run("another commit in the label is refused", func(t *testing.T) {
		other := strings.TrimSpace(c.bash("git rev-parse HEAD"))
		wantRefused(t, c, relabelled(t, image, other), tag, "contradicts itself: its label names commit "+other+`, but its program "`+commit+`"`)
	})
	t.Run("a clone without the commit", func(t *testing.T) {
		stranger := &clone{T: t, folder: t.TempDir()}
		stranger.bash(`cp -R "$1"/. . && rm -rf .git && git init --quiet && git add --all && git commit --quiet --message=another`, c.folder)
		wantRefused(t, stranger, image, tag, "this clone has no commit "+commit)
	})
	t.Run("a tag instead of a digest is refused", func(t *testing.T) {
		if _, stderr, err := c.try(`make verify-image IMAGE="$1:v1"`, repository); err == nil || !strings.Contains(stderr, "must be NAME@sha256:DIGEST") {
			t.Errorf("make verify-image prints (%v)\n%s", err, stderr)
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

// wantRefused pushes the image, and fails the test unless make verify-image refuses the
// image for the reasons.
func wantRefused(t *testing.T, c *clone, image v1.Image, tag name.Tag, reasons ...string) {
	t.Helper()
	digest, err := image.Digest()
	must(t, err)
	must(t, remote.Write(tag.Context().Tag("other"), image))
	stdout, stderr, err := c.try(`make verify-image IMAGE="$1"`, tag.Digest(digest.String()).String())
	if err == nil {
		t.Errorf("%s is verified:\n%s", digest, stdout)
	}
	for _, reason := range reasons {
		if !strings.Contains(stderr, reason) {
			t.Errorf("make verify-image does not print %q:\n%s", reason, stderr)
		}
	}
}

// tampered returns the image with one changed byte of the program, another layer, and
// another entry point.
func tampered(t *testing.T, image v1.Image) v1.Image {
	t.Helper()
	all := files(t, image)
	program := all[0]
	at := bytes.Index(program.content, []byte(inProgram))
	if at < 0 {
		t.Fatalf("the program does not contain %q", inProgram)
	}
	program.content[at] ^= 1
	config, err := image.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.RootFS.DiffIDs, config.History = nil, nil
	config.Config.Entrypoint = []string{"/etc/sh", programFile}
	other, err := mutate.ConfigFile(emptyLike(t, image), config)
	must(t, err)
	other, err = mutate.AppendLayers(other, layerOf(t, all...), layerOf(t, file{tar.Header{Name: "etc/sh", Mode: 0o755, Size: 4}, []byte("evil")}))
	must(t, err)
	return other
}

// relabelled returns the image with another commit in its label and its annotation.
func relabelled(t *testing.T, image v1.Image, commit string) v1.Image {
	t.Helper()
	revision := map[string]string{"org.opencontainers.image.revision": commit}
	config, err := image.ConfigFile()
	must(t, err)
	changed := *config.Config.DeepCopy()
	changed.Labels["org.opencontainers.image.revision"] = commit
	other, err := mutate.Config(image, changed)
	must(t, err)
	return mutate.Annotations(other, revision).(v1.Image)
}

// emptyLike returns an image without layers that has the formats and annotations of
// another.
func emptyLike(t *testing.T, image v1.Image) v1.Image {
	t.Helper()
	manifest, err := image.Manifest()
	must(t, err)
	like := mutate.ConfigMediaType(mutate.MediaType(empty.Image, manifest.MediaType), manifest.Config.MediaType)
	return mutate.Annotations(like, manifest.Annotations).(v1.Image)
}

// layerOf returns a layer with files.
func layerOf(t *testing.T, files ...file) v1.Layer {
	t.Helper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, file := range files {
		must(t, archive.WriteHeader(&file.Header))
		_, err := archive.Write(file.content)
		must(t, err)
	}
	must(t, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	must(t, err)
	return layer
}
