// SPDX-License-Identifier: Apache-2.0

// Tests of verification.

package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func TestImagesWithoutADigestAreNotVerified(t *testing.T) {
	for _, image := range []string{"", "registry.example.com/controller", "registry.example.com/controller:v1", "registry.example.com/controller@sha256:12"} {
		if err := verify(t.Context(), io.Discard, image); err == nil || !strings.Contains(err.Error(), "must be NAME@sha256:DIGEST") {
			t.Errorf("%q: the error is %v", image, err)
		}
	}
}

func TestImagesWithInvalidClaimsAreNotVerified(t *testing.T) {
	// The test's own program: the go command has built it, but not in a clone.
	path, err := os.Executable()
	must(t, err)
	content, err := os.ReadFile(path)
	must(t, err)
	config, err := newImages(t, "amd64")[0].ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.RootFS.DiffIDs, config.History = nil, nil
	bare, err := mutate.ConfigFile(empty.Image, config)
	must(t, err)
	built := layered(t, bare, newLayer(t, tar.Header{Name: programName, Mode: 0o755}, string(content), gzip.NoCompression))
	labelled := func(name, value string) v1.Image {
		return configured(t, built, func(config *v1.Config) { config.Labels[labelPrefix+name] = value })
	}
	withoutCommit, err := newPlatformImage(withoutGit(programFor("amd64")))
	must(t, err)
	for name, row := range map[string]struct {
		image v1.Image
		want  string
	}{
		"no commit":                     {withoutCommit, "does not name its commit"},
		"a branch instead of a commit":  {labelled("revision", "main"), `revision="main", which is not a commit`},
		"an option for git":             {labelled("version", "--upload-pack=x"), `version="--upload-pack=x", which is not a version`},
		"a changed tree":                {labelled("version", "v1.2.3+dirty"), "built from a tree with uncommitted changes"},
		"another commit in the program": {built, "its label names commit " + commit + `, but its program ""`},
		"no program":                    {newImages(t, "amd64")[0], "that the go command did not build"},
		"another system":                {newImages(t, "amd64;x")[0], `is for the platform "linux/amd64;x"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newArtifact(t, row.image).claims(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// newRepository makes a repository whose first commit has the tag v1.2.3, changes the
// working directory to it, and returns that commit.
func newRepository(t *testing.T) string {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	script := `git init -q && echo "module a" >go.mod && git add --all &&
git -c user.name=a -c user.email=a@example.com commit -q -m first && git tag v1.2.3 &&
git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m second && git tag v1.2.4 && git rev-parse HEAD^`
	printed, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	must(t, err)
	return strings.TrimSpace(string(printed))
}

func TestRebuildRefusals(t *testing.T) {
	first := newRepository(t)
	pseudo := "v1.2.4-0.20260504030201-0123456789ab"
	for name, row := range map[string]struct {
		claims claims
		want   string
	}{
		"an unknown commit":         {claims{revision: commit}, "this clone has no commit " + commit + ": run git fetch"},
		"an unknown tag":            {claims{revision: first, version: "v9.9.9"}, "this clone has no tag v9.9.9: run git fetch --tags"},
		"the tag of another commit": {claims{revision: first, version: "v1.2.4"}, "the image names version v1.2.4 and commit " + first + ", but the tag v1.2.4 of this clone is at "},
		"another Go release":        {claims{revision: first, version: "v1.2.3", release: "go1.2.3"}, "built with go1.2.3, but this is " + runtime.Version()},
		"no scripts":                {claims{revision: first, version: pseudo, release: runtime.Version()}, "building commit " + first},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rebuild(t.Context(), t.TempDir(), row.claims); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Chdir(t.TempDir())
	if _, err := rebuild(t.Context(), t.TempDir(), claims{revision: first}); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("without a repository, the error is %v", err)
	}
}

func TestCloneHasTheBuildersTags(t *testing.T) {
	first := newRepository(t)
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "v0.0.0-20260504030201-" + first[:12]: ""} {
		folder, err := checkOut(t.Context(), t.TempDir()+"/clone", "", claims{revision: first, version: version})
		must(t, err)
		tags, err := output(t.Context(), folder, "git", "tag", "--points-at", "HEAD")
		must(t, err)
		if tags != want {
			t.Errorf("%s: the tags are %q", version, tags)
		}
	}
	tags, err := output(t.Context(), ".", "git", "tag")
	must(t, err)
	if tags != "v1.2.3\nv1.2.4" {
		t.Errorf("the tags of the user's own clone are now %q", tags)
	}
}
