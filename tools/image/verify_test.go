// SPDX-License-Identifier: Apache-2.0

// Tests of what an image says about its build, and of a push.

package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestClaims(t *testing.T) {
	both := []string{"linux/amd64", "linux/arm64"}
	set := func(key, value string) func(*program) {
		return func(p *program) {
			p.info.Settings = append([]debug.BuildSetting{{Key: key, Value: value}}, p.info.Settings...)
		}
	}
	for name, row := range map[string]struct {
		change    func(*program)
		platforms []string
		want      string // the claims, or the beginning of the error
	}{
		"good":                         {func(*program) {}, both, commit + " go1.26.0 off linux/amd64,linux/arm64 v1.2.3"},
		"no version":                   {func(p *program) { p.info.Main.Version = "(devel)" }, both[:1], commit + " go1.26.0 off linux/amd64"},
		"a cryptographic module":       {set("GOFIPS140", "v1.0.0"), both[1:], commit + " go1.26.0 v1.0.0 linux/arm64 v1.2.3"},
		"no commit":                    {func(p *program) { withoutGit(p) }, both, "does not name its commit"},
		"a changed tree":               {set("vcs.modified", "true"), both, "was built from a tree with changes that are not in commit " + commit},
		"a branch instead of a commit": {set("vcs.revision", "main"), both, `claims "main go1.26.0`},
		"an option for git":            {func(p *program) { p.info.Main.Version = "--upload-pack=x" }, both, `claims "`},
		"an option for go":             {func(p *program) { p.info.GoVersion = "-o" }, both, `claims "`},
		"a command":                    {set("GOFIPS140", "$(x)"), both, `claims "`},
		"another system":               {func(*program) {}, []string{"linux/amd64;x"}, `claims "`},
	} {
		p := programFor("amd64")
		row.change(p)
		got, err := p.claims(row.platforms)
		if err != nil && strings.HasPrefix(err.Error(), row.want) || err == nil && got == row.want {
			continue
		}
		t.Errorf("%s: it claims %q (%v)", name, got, err)
	}
	images := newImages(t, "amd64")
	tag := newRegistry(t, registry.New(quiet())).Tag("v1")
	must(t, push(t.Context(), tag, images, combine(images), "", false))
	digest, err := combine(images).Digest()
	must(t, err)
	_, err = claimsOf(t.Context(), tag.Digest(digest.String()).String())
	if err == nil || !strings.Contains(err.Error(), "has a sample-controller that the go command did not build") {
		t.Errorf("an image without a program: %v", err)
	}
}

// newRegistry starts a registry, and returns the name of a repository in it.
func newRegistry(t *testing.T, handler http.Handler) name.Repository {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // without credentials
	return newTag(t, strings.TrimPrefix(server.URL, "http://")+"/team/controller").Repository
}

func quiet() registry.Option { return registry.Logger(log.New(io.Discard, "", 0)) }

func TestPushRefusals(t *testing.T) {
	dirty := programFor("amd64")
	dirty.info.Settings[len(dirty.info.Settings)-1].Value = "true"
	for name, row := range map[string]struct {
		program *program
		tag     string
		release string
		want    string // in the error; empty if the push succeeds
	}{
		"a new tag":        {programFor("amd64"), "v2", "go1.25.9", ""},
		"the same image":   {programFor("amd64"), "v1", "go1.26.0", ""},
		"another image":    {programFor("arm64"), "v1", "", "the tag belongs to sha256:"},
		"a changed tree":   {dirty, "v2", "", "the tree has changes that are not in commit " + commit},
		"no commit at all": {withoutGit(programFor("amd64")), "v2", "", "the build found no git commit"},
		"an older Go":      {programFor("amd64"), "v2", "go1.26.1", "GOTOOLCHAIN=go1.26.1 "},
		"a much older Go":  {programFor("amd64"), "v2", "go1.26.10", "GOTOOLCHAIN=go1.26.10 "},
	} {
		t.Run(name, func(t *testing.T) {
			repository := newRegistry(t, registry.New(quiet()))
			first := newImages(t, "amd64")
			must(t, push(t.Context(), repository.Tag("v1"), first, combine(first), "", false))
			image, err := newPlatformImage(row.program)
			must(t, err)
			images := []*platformImage{image}
			tag := repository.Tag(row.tag)

			err = push(t.Context(), tag, images, combine(images), row.release, false)

			if (row.want == "") != (err == nil) {
				t.Errorf("the error is %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "FORCE=1") {
					t.Errorf("the error is %v", err)
				}
				wantTag(t, repository.Tag("v1"), first[0])
			}
			must(t, push(t.Context(), tag, images, combine(images), row.release, true))
			wantTag(t, tag, image)
		})
	}
}

// wantTag fails the test unless the tag belongs to the image.
func wantTag(t *testing.T, tag name.Tag, image *platformImage) {
	t.Helper()
	want, err := combine([]*platformImage{image}).Digest()
	must(t, err)
	head, err := remote.Head(tag)
	must(t, err)
	if head.Digest != want {
		t.Errorf("%s is %s, want %s", tag, head.Digest, want)
	}
}

func TestPushIfTheTagCannotBeChecked(t *testing.T) {
	repository := newRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	images := newImages(t, "amd64")
	err := push(t.Context(), repository.Tag("v1"), images, combine(images), "", false)
	if err == nil || !strings.Contains(err.Error(), "checking whether the tag is taken") || !strings.Contains(err.Error(), "FORCE=1") {
		t.Errorf("the error is %v", err)
	}
}
