// SPDX-License-Identifier: Apache-2.0

// Tests of verification, and of the checks before a push.

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestImagesWithoutADigestAreNotVerified(t *testing.T) {
	for _, image := range []string{"", "registry.example.com/controller", "registry.example.com/controller:v1", "registry.example.com/controller@sha256:12"} {
		if err := verify(t.Context(), io.Discard, image); err == nil || !strings.Contains(err.Error(), "must be NAME@sha256:DIGEST") {
			t.Errorf("%q: the error is %v", image, err)
		}
	}
}

// own returns a program whose file is that of this test, which the go command has built,
// but not in a clone; the image's labels come from the rest, with another setting.
func own(t *testing.T, key, value string) *program {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	p := programFor("amd64")
	p.content, err = os.ReadFile(path)
	must(t, err)
	for i, setting := range p.info.Settings {
		if setting.Key == key {
			p.info.Settings[i].Value = value
		}
	}
	if key == "version" {
		p.info.Main.Version = value
	}
	return p
}

func TestImagesWithInvalidClaimsAreNotVerified(t *testing.T) {
	for name, row := range map[string]struct {
		program *program
		want    string
	}{
		"no commit":                     {withoutGit(programFor("amd64")), "does not name its commit"},
		"a branch instead of a commit":  {own(t, "vcs.revision", "main"), `revision="main", which is not a commit`},
		"an option for git":             {own(t, "version", "--upload-pack=x"), `version="--upload-pack=x", which is not a version`},
		"a changed tree":                {own(t, "version", "v1.2.3+dirty"), "built from a tree with uncommitted changes"},
		"another commit in the program": {own(t, "", ""), "its label names commit " + commit + `, but its program ""`},
		"no program":                    {programFor("amd64"), "that the go command did not build"},
		"another system":                {programFor("amd64;x"), `is for the platform "linux/amd64;x"`},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := newPlatformImage(row.program)
			must(t, err)
			if _, err := claimsOf(image); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	two := newImages(t, "amd64", "arm64")
	other := programFor("amd64")
	other.content = []byte("another program")
	changed, err := newPlatformImage(other)
	must(t, err)
	more, err := mutate.AppendLayers(two[0].Image, static.NewLayer(nil, types.OCILayer))
	must(t, err)
	for name, row := range map[string]struct {
		published, rebuilt described
		want               []string // the beginnings of the lines
	}{
		"another program": {combine([]*platformImage{changed, two[1]}), combine(two), []string{
			"index is sha256:", "linux/amd64: image is sha256:", "linux/amd64: config is sha256:", "linux/amd64: layer 1 is sha256:"}},
		"an additional layer": {more, two[0].Image, []string{
			"linux/amd64: image is sha256:", "linux/amd64: config is sha256:", "linux/amd64: layer 2 is sha256:"}},
		"a missing layer": {two[0].Image, more, []string{
			"linux/amd64: image is sha256:", "linux/amd64: config is sha256:", "linux/amd64: layer 2 is missing, the commit makes sha256:"}},
		"a missing platform": {combine(two[:1]), combine(two), []string{
			"index is missing, the commit makes sha256:", "linux/arm64: image is missing", "linux/arm64: config is missing", "linux/arm64: layer 1 is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := differences(row.published, row.rebuilt)
			must(t, err)
			if !slices.EqualFunc(lines, row.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(row.want, "\n"))
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

func TestPush(t *testing.T) {
	tag := newRegistry(t, registry.WithReferrersSupport(true)).Tag("v1")
	images := newImages(t, "amd64", "arm64")
	must(t, push(t.Context(), tag, images, combine(images), false))
	wantTag(t, tag, combine(images))
	for _, image := range images {
		wantReferrer(t, tag.Repository, image)
	}
}

// newRegistry starts a registry, and returns the name of a repository in it.
func newRegistry(t *testing.T, options ...registry.Option) name.Repository {
	t.Helper()
	server := httptest.NewServer(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // without credentials
	return newTag(t, strings.TrimPrefix(server.URL, "http://")+"/team/controller").Repository
}

// wantReferrer fails the test unless the image has exactly one referrer: the bill of
// materials of its program.
func wantReferrer(t *testing.T, repository name.Repository, image *platformImage) {
	t.Helper()
	digest, err := image.Digest()
	must(t, err)
	index, err := remote.Referrers(repository.Digest(digest.String()))
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the referrers are %+v", manifest.Manifests)
	}
	found, err := remote.Image(repository.Digest(manifest.Manifests[0].Digest.String()))
	must(t, err)
	foundManifest, err := found.Manifest()
	must(t, err)
	if foundManifest.ArtifactType != bomType || foundManifest.Subject == nil || foundManifest.Subject.Digest != digest {
		t.Errorf("the referrer is a %s of %+v", foundManifest.ArtifactType, foundManifest.Subject)
	}
	if title := foundManifest.Layers[0].Annotations[labelPrefix+"title"]; title != bomFile(image.program) {
		t.Errorf("the document is called %q", title)
	}
	layers, err := found.Layers()
	must(t, err)
	content, err := layers[0].Compressed()
	want, bomErr := bomOf(image.program)
	must(t, bomErr)
	if !bytes.Equal(readAll(t, content, err), want) {
		t.Error("the document describes another program")
	}
}

func TestPushRefusals(t *testing.T) {
	dirty := programFor("amd64")
	dirty.info.Settings[len(dirty.info.Settings)-1].Value = "true"
	for name, row := range map[string]struct {
		program *program
		tag     string
		want    string // in the error; empty if the push succeeds
	}{
		"a new tag":        {programFor("amd64"), "v2", ""},
		"the same image":   {programFor("amd64"), "v1", ""},
		"another image":    {programFor("arm64"), "v1", "the tag is taken by sha256:"},
		"a changed tree":   {dirty, "v2", "the tree has changes that are not in commit " + commit},
		"no commit at all": {withoutGit(programFor("amd64")), "v2", "the build found no git commit"},
	} {
		t.Run(name, func(t *testing.T) {
			repository := newRegistry(t)
			first := newImages(t, "amd64")
			must(t, push(t.Context(), repository.Tag("v1"), first, combine(first), false))
			image, err := newPlatformImage(row.program)
			must(t, err)
			images := []*platformImage{image}
			tag := repository.Tag(row.tag)

			err = push(t.Context(), tag, images, combine(images), false)

			if (row.want == "") != (err == nil) {
				t.Errorf("the error is %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "FORCE=1") {
					t.Errorf("the error is %v", err)
				}
				wantTag(t, repository.Tag("v1"), first[0])
			}
			must(t, push(t.Context(), tag, images, combine(images), true))
			wantTag(t, tag, image)
		})
	}
}

func TestPushNeedsTheReleaseOfGoMod(t *testing.T) {
	p := programFor("amd64") // of go1.26.0
	for named, refused := range map[string]bool{"": false, "go1.25.9": false, "go1.26.0": false, "go1.26.1": true, "go1.26.10": true} {
		err := checkRelease(p, named)
		if refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "GOTOOLCHAIN="+named+" ") {
			t.Errorf("%s: the error is %v", named, err)
		}
	}
}

// wantTag fails the test unless the tag belongs to the image.
func wantTag(t *testing.T, tag name.Tag, image described) {
	t.Helper()
	want, err := image.Digest()
	must(t, err)
	head, err := remote.Head(tag)
	must(t, err)
	if head.Digest != want {
		t.Errorf("%s is %s, want %s", tag, head.Digest, want)
	}
}

func TestPushIfTheTagCannotBeChecked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	images := newImages(t, "amd64")
	err := push(t.Context(), newTag(t, strings.TrimPrefix(server.URL, "http://")+"/controller"), images, combine(images), false)
	if err == nil || !strings.Contains(err.Error(), "checking whether the tag is taken") || !strings.Contains(err.Error(), "FORCE=1") {
		t.Errorf("the error is %v", err)
	}
}
