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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestClaims(t *testing.T) {
	set := func(key, value string) func(*program) {
		return func(p *program) {
			p.info.Settings = append([]debug.BuildSetting{{Key: key, Value: value}}, p.info.Settings...)
		}
	}
	version := func(version string) func(*program) { return func(p *program) { p.info.Main.Version = version } }
	for name, row := range map[string]struct {
		change func(*program)
		want   string // the claims, or the beginning of the error
	}{
		"good":                         {func(*program) {}, commit + " go1.26.0 off linux/amd64 v1.2.3"},
		"no version":                   {version("(devel)"), commit + " go1.26.0 off linux/amd64"},
		"a cryptographic module":       {set("GOFIPS140", "v1.0.0"), commit + " go1.26.0 v1.0.0 linux/amd64 v1.2.3"},
		"no commit":                    {func(p *program) { withoutGit(p) }, "does not name its commit"},
		"a changed tree":               {version("v1.2.3+dirty"), "was built from a tree with changes that are not in commit " + commit},
		"a branch instead of a commit": {set("vcs.revision", "main"), `claims "main go1.26.0`},
		"an option for git":            {version("--upload-pack=x"), `claims "`},
		"an option for go":             {func(p *program) { p.info.GoVersion = "-o" }, `claims "`},
		"a command":                    {set("GOFIPS140", "$(x)"), `claims "`},
		"another system":               {func(p *program) { p.platform.OS = "linux;x" }, `claims "`},
		"another tool":                 {func(p *program) { p.info.Main.Path = "example.com/a/b"; p.info.GoVersion = "" }, `claims "`},
	} {
		p := programFor(t, "amd64")
		row.change(p)
		manifest, err := indexOf(t, p).IndexManifest()
		must(t, err)
		got, err := claims(manifest)
		if err != nil && strings.HasPrefix(err.Error(), row.want) || err == nil && got == row.want {
			continue
		}
		t.Errorf("%s: it claims %q (%v)", name, got, err)
	}
	if _, err := claimsOf(t.Context(), "registry.example.com/controller:v1"); err == nil || !strings.Contains(err.Error(), "must be NAME@sha256:DIGEST") {
		t.Errorf("a tag: %v", err)
	}
}

func TestPushRefusals(t *testing.T) {
	dirty := programFor(t, "amd64")
	dirty.info.Settings[len(dirty.info.Settings)-1].Value = "true"
	open := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/manifests/v3") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		open.ServeHTTP(w, r)
	}))
	defer server.Close()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // without credentials
	repository := newTag(t, strings.TrimPrefix(server.URL, "http://")+"/team/controller").Repository
	first := indexOf(t, programFor(t, "amd64"))
	must(t, push(t.Context(), repository.Tag("v1"), programFor(t, "amd64"), first, "", false))
	for name, row := range map[string]struct {
		program *program
		tag     string
		release string
		want    string // in the error; empty if the push succeeds
	}{
		"a new tag":        {programFor(t, "amd64"), "v2", "go1.25.9", ""},
		"the same image":   {programFor(t, "amd64"), "v1", "go1.26.0", ""},
		"another image":    {programFor(t, "arm64"), "v1", "", "the tag belongs to sha256:"},
		"a hidden tag":     {programFor(t, "amd64"), "v3", "", "checking whether the tag is taken"},
		"a changed tree":   {dirty, "v2", "", "the tree has changes that are not in commit " + commit},
		"no commit at all": {withoutGit(programFor(t, "amd64")), "v2", "", "the build found no git commit"},
		"an older Go":      {programFor(t, "amd64"), "v2", "go1.26.1", "GOTOOLCHAIN=go1.26.1 "},
		"a much older Go":  {programFor(t, "amd64"), "v2", "go1.26.10", "GOTOOLCHAIN=go1.26.10 "},
	} {
		err := push(t.Context(), repository.Tag(row.tag), row.program, indexOf(t, row.program), row.release, false)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "FORCE=1")) {
			t.Errorf("%s: the error is %v", name, err)
		}
		wantTag(t, repository.Tag("v1"), first)
	}
	other := indexOf(t, programFor(t, "arm64"))
	must(t, push(t.Context(), repository.Tag("v1"), dirty, other, "go1.26.10", true))
	wantTag(t, repository.Tag("v1"), other)
}

// wantTag fails the test unless the tag belongs to the image.
func wantTag(t *testing.T, tag name.Tag, index v1.ImageIndex) {
	t.Helper()
	want, err := index.Digest()
	must(t, err)
	head, err := remote.Head(tag)
	must(t, err)
	if head.Digest != want {
		t.Errorf("%s is %s, want %s", tag, head.Digest, want)
	}
}
