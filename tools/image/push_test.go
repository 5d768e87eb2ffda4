// SPDX-License-Identifier: Apache-2.0

// Tests of pushing.

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

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
