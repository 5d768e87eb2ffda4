// SPDX-License-Identifier: Apache-2.0

// Tests of make verify-image.

package test

import (
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

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
	t.Run("another entry point is reported", func(t *testing.T) {
		other := withEntrypoint(t, image, "/etc/sh")
		must(t, remote.Write(tag.Context().Tag("other"), other))
		otherDigest, err := other.Digest()
		must(t, err)
		stdout, stderr, err := c.try(`make verify-image IMAGE="$1@$2"`, repository, otherDigest.String())
		platform := "linux/" + runtime.GOARCH
		for _, part := range []string{" is not what commit " + commit + " makes, which is " + digest.String(), platform + ": image is " + otherDigest.String(), platform + ": config is "} {
			if err == nil || !strings.Contains(stderr, part) {
				t.Errorf("make verify-image does not print %q (%v):\n%s%s", part, err, stdout, stderr)
			}
		}
		if strings.Contains(stderr, "layer 1") {
			t.Errorf("make verify-image reports the layer, which is the same:\n%s", stderr)
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

// withEntrypoint returns the image with another entry point.
func withEntrypoint(t *testing.T, image v1.Image, path string) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	must(t, err)
	config := *file.Config.DeepCopy()
	config.Entrypoint = []string{path}
	other, err := mutate.Config(image, config)
	must(t, err)
	return other
}
