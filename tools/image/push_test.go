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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPush(t *testing.T) {
	for name, row := range map[string]struct {
		architectures []string
		referrers     bool // whether the registry has the API for referrers
	}{
		"one platform":                      {[]string{"amd64"}, true},
		"two platforms":                     {[]string{"amd64", "arm64"}, true},
		"a registry without referrers":      {[]string{"amd64"}, false},
		"two, a registry without referrers": {[]string{"amd64", "arm64"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(row.referrers)))
			defer server.Close()
			t.Setenv("DOCKER_CONFIG", t.TempDir()) // without credentials
			tag := newTag(t, strings.TrimPrefix(server.URL, "http://")+"/team/controller:v1")
			images := newImages(t, row.architectures...)
			whole := combine(images)

			must(t, push(t.Context(), tag, images, whole, false))

			want, err := whole.Digest()
			must(t, err)
			head, err := remote.Head(tag)
			must(t, err)
			if head.Digest != want {
				t.Errorf("%s is %s, want %s", tag, head.Digest, want)
			}
			for _, image := range images {
				digest, err := image.Digest()
				must(t, err)
				index, err := remote.Referrers(tag.Digest(digest.String()))
				must(t, err)
				wantReferrer(t, index, image, func(digest v1.Hash) (v1.Image, error) {
					return remote.Image(tag.Digest(digest.String()))
				})
			}
		})
	}
}

// wantReferrer fails the test unless index has exactly one referrer: the bill of
// materials of the image's program.
func wantReferrer(t *testing.T, index v1.ImageIndex, image *platformImage, get func(v1.Hash) (v1.Image, error)) {
	t.Helper()
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the referrers are %+v", manifest.Manifests)
	}
	found, err := get(manifest.Manifests[0].Digest)
	must(t, err)
	foundManifest, err := found.Manifest()
	must(t, err)
	if foundManifest.ArtifactType != bomType {
		t.Errorf("the referrer is %s", foundManifest.ArtifactType)
	}
	subject, err := image.Digest()
	must(t, err)
	if foundManifest.Subject == nil || foundManifest.Subject.Digest != subject {
		t.Errorf("the subject is %+v, want %s", foundManifest.Subject, subject)
	}
	if title := foundManifest.Layers[0].Annotations["org.opencontainers.image.title"]; title != bomFile(image.program) {
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
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
			defer server.Close()
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			repository := strings.TrimPrefix(server.URL, "http://") + "/team/controller:"
			first := newImages(t, "amd64")
			must(t, push(t.Context(), newTag(t, repository+"v1"), first, combine(first), false))
			image, err := newPlatformImage(row.program)
			must(t, err)
			images := []*platformImage{image}
			tag := newTag(t, repository+row.tag)

			err = push(t.Context(), tag, images, combine(images), false)

			if (row.want == "") != (err == nil) {
				t.Errorf("the error is %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "FORCE=1") {
					t.Errorf("the error is %v", err)
				}
				wantTag(t, newTag(t, repository+"v1"), first[0])
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
func wantTag(t *testing.T, tag name.Tag, image v1.Image) {
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

func TestPushErrorNamesTheRegistry(t *testing.T) {
	server := httptest.NewServer(nil)
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	images := newImages(t, "amd64")
	err := push(t.Context(), newTag(t, host+"/controller"), images, combine(images), false)
	if err == nil || !strings.Contains(err.Error(), host) {
		t.Errorf("the error is %v", err)
	}
}
