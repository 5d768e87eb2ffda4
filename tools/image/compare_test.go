// SPDX-License-Identifier: Apache-2.0

// Tests of the differences.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// given is an image or an index that counts as fetched.
type given struct{ whole described }

func (g given) Image() (v1.Image, error)           { return g.whole.(v1.Image), nil }
func (g given) ImageIndex() (v1.ImageIndex, error) { return g.whole.(v1.ImageIndex), nil }

func newArtifact(t *testing.T, whole described) *artifact {
	t.Helper()
	mediaType, err := whole.MediaType()
	must(t, err)
	a, err := artifactOf(mediaType, given{whole})
	must(t, err)
	return a
}

// configured returns the image with another config.
func configured(t *testing.T, image v1.Image, change func(*v1.Config)) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	must(t, err)
	config := *file.Config.DeepCopy()
	change(&config)
	image, err = mutate.Config(image, config)
	must(t, err)
	return image
}

// newLayer returns a layer with one file.
func newLayer(t *testing.T, header tar.Header, content string, level int) v1.Layer {
	t.Helper()
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	header.Size, header.Format = int64(len(content)), tar.FormatUSTAR
	must(t, archive.WriteHeader(&header))
	_, err := archive.Write([]byte(content))
	must(t, err)
	must(t, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(level))
	must(t, err)
	return layer
}

// layered returns the image with one more layer.
func layered(t *testing.T, image v1.Image, layer v1.Layer) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(image, layer)
	must(t, err)
	return image
}

// spaced is an image whose manifest ends with an additional space.
type spaced struct{ v1.Image }

func (s spaced) RawManifest() ([]byte, error) {
	manifest, err := s.Image.RawManifest()
	return append(manifest, ' '), err
}

func TestDifferences(t *testing.T) {
	original := newImages(t, "amd64")[0]
	other := programFor("amd64")
	other.content = []byte("the program for amd65")
	changed, err := newPlatformImage(other)
	must(t, err)
	two := newImages(t, "amd64", "arm64")
	for name, row := range map[string]struct {
		published, rebuilt described
		want               []string // the beginnings of the lines
	}{
		"one byte of the program": {changed.Image, original.Image, []string{
			`linux/amd64: layer 1: file "sample-controller" differs in 1 of 21 bytes, the first of them at 20`}},
		"another entry point": {configured(t, original, func(c *v1.Config) { c.Entrypoint = []string{"/bin/sh"} }), original.Image, []string{
			`linux/amd64: config "config" "Entrypoint" is ["/bin/sh"], the commit makes ["/sample-controller"]`}},
		"a variable": {configured(t, original, func(c *v1.Config) { c.Env = []string{"A=b"} }), original.Image, []string{
			`linux/amd64: config "config" "Env" is ["A=b"], the commit makes nothing`}},
		"another user": {configured(t, original, func(c *v1.Config) { c.User = "" }), original.Image, []string{
			`linux/amd64: config "config" "User" is nothing, the commit makes "65532:65532"`}},
		"an additional layer": {layered(t, original, newLayer(t, tar.Header{Name: "etc/passwd", Mode: 0o644}, "root", gzip.BestSpeed)), original.Image, []string{
			`linux/amd64: config "history" is [`,
			`linux/amd64: layer 2: the commit does not make it`,
			`linux/amd64: layer 2: file "etc/passwd", 4 bytes: the commit does not make it`}},
		"a missing layer": {original.Image, layered(t, original, newLayer(t, tar.Header{Name: "more", Mode: 0o644}, "", gzip.BestSpeed)), []string{
			`linux/amd64: config "history" is [`,
			`linux/amd64: layer 2: missing, but the commit makes it`,
			`linux/amd64: layer 2: file "more": missing, but the commit makes it`}},
		"another annotation": {mutate.Annotations(original.Image, map[string]string{"org.opencontainers.image.revision": "0"}).(v1.Image), original.Image, []string{
			`linux/amd64: manifest "annotations" "org.opencontainers.image.revision" is "0", the commit makes "` + commit + `"`}},
		"an index instead of an image": {combine(two), original.Image, []string{
			"it is an index, the commit makes a single image",
			`it is for ["linux/amd64" "linux/arm64"], the commit makes ["linux/amd64"]`}},
		"a missing platform": {combine(two), combine(newImages(t, "amd64", "arm64", "s390x")), []string{
			`it is for ["linux/amd64" "linux/arm64"], the commit makes ["linux/amd64" "linux/arm64" "linux/s390x"]`}},
		"the second platform's program": {combine([]*platformImage{changed, two[1]}), combine(two), []string{
			`linux/amd64: layer 1: file "sample-controller" differs in 1 of 21 bytes`}},
		"other bytes, the same content": {spaced{original.Image}, original.Image, []string{
			"the same content, but the manifests have other bytes"}},
		"an annotation of the index": {mutate.Annotations(combine(two).(v1.ImageIndex), map[string]string{"more": "x"}).(v1.ImageIndex), combine(two), []string{
			`index "annotations" "more" is "x", the commit makes nothing`}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := differences(newArtifact(t, row.published), newArtifact(t, row.rebuilt))
			must(t, err)
			wantLines(t, found, row.want)
		})
	}
}

func TestDifferencesOfLayers(t *testing.T) {
	program := tar.Header{Name: programName, Mode: 0o755}
	setuid := tar.Header{Name: programName, Mode: 0o4755}
	for name, row := range map[string]struct {
		published, rebuilt v1.Layer
		want               []string
	}{
		"none": {newLayer(t, program, "x", gzip.BestSpeed), newLayer(t, program, "x", gzip.BestSpeed), nil},
		"the mode": {newLayer(t, setuid, "x", gzip.BestSpeed), newLayer(t, program, "x", gzip.BestSpeed), []string{
			`layer 1: file "sample-controller" has type '0', mode 4755,`}},
		"the length": {newLayer(t, program, "xyz", gzip.BestSpeed), newLayer(t, program, "x", gzip.BestSpeed), []string{
			`layer 1: file "sample-controller" has 3 bytes, the commit makes 1`}},
		"the compression": {newLayer(t, program, "x", gzip.NoCompression), newLayer(t, program, "x", gzip.BestSpeed), []string{
			"layer 1 has the same files, but another compression or order"}},
		"the name": {newLayer(t, tar.Header{Name: "\x1b[2Jsh", Mode: 0o755}, "x", gzip.BestSpeed), newLayer(t, program, "x", gzip.BestSpeed), []string{
			`layer 1: file "\x1b[2Jsh", 1 bytes: the commit does not make it`,
			`layer 1: file "sample-controller": missing, but the commit makes it`}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &difference{}
			must(t, d.layer(0, []v1.Layer{row.published}, []v1.Layer{row.rebuilt}))
			wantLines(t, d.found, row.want)
		})
	}
}

// wantLines fails the test unless each line begins as wanted.
func wantLines(t *testing.T, lines, want []string) {
	t.Helper()
	if !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
