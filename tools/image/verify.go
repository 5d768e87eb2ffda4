// SPDX-License-Identifier: Apache-2.0

// What an image of a registry says about its build, and in what it differs from another.
// hack/image.sh -verify builds the image again.

package main

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fetch returns the image or the index NAME@DIGEST in a registry.
func fetch(ctx context.Context, image string) (described, error) {
	reference, err := name.NewDigest(image)
	if err != nil {
		return nil, fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	descriptor, err := remote.Get(reference, registryOptions(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", image, err)
	}
	if descriptor.MediaType.IsIndex() {
		return descriptor.ImageIndex()
	}
	return descriptor.Image()
}

// ofPlatform is an image and its platform, such as linux/amd64.
type ofPlatform struct {
	v1.Image
	platform string
}

// imagesIn returns the images of an index, or an image alone.
func imagesIn(whole described) ([]ofPlatform, error) {
	index, isIndex := whole.(v1.ImageIndex)
	if !isIndex {
		image := whole.(v1.Image)
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		return []ofPlatform{{image, config.Platform().String()}}, nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var images []ofPlatform
	for _, entry := range manifest.Manifests {
		if !entry.MediaType.IsImage() {
			return nil, fmt.Errorf("the index contains %s, a %s: make image adds only images", entry.Digest, entry.MediaType)
		}
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		platform := "unknown"
		if entry.Platform != nil {
			platform = entry.Platform.String()
		}
		images = append(images, ofPlatform{image, platform})
	}
	return images, nil
}

// claimsOf returns what an image or an index says about its build: commit, Go release,
// GOFIPS140, platforms and version, if any. All but the platforms are read from the first
// program. They are not trusted: they only determine what to build, and the result must be
// the same image. The caller puts the image before the error's text.
func claimsOf(whole described) (string, error) {
	images, err := imagesIn(whole)
	if err != nil {
		return "", fmt.Errorf("is unreadable: %w", err)
	}
	if len(images) == 0 {
		return "", errors.New("has no image")
	}
	var platforms []string
	for _, image := range images {
		platforms = append(platforms, image.platform)
	}
	content, err := programIn(images[0])
	if err != nil {
		return "", err
	}
	p, err := newProgram(content)
	if err != nil {
		return "", fmt.Errorf("has a %s that the go command did not build: %w", programName, err)
	}
	return p.claims(platforms)
}

var (
	// A SHA-1 or SHA-256, as git writes them.
	wholeRevision = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	plainWord     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	linuxPlatform = regexp.MustCompile(`^linux/[a-z0-9]+$`)
)

// claims returns the line of claims, if all that the script calls git and the go command
// with is harmless.
func (p *program) claims(platforms []string) (string, error) {
	for _, platform := range platforms {
		if !linuxPlatform.MatchString(platform) {
			return "", fmt.Errorf("is for the platform %q, which make image does not support", platform)
		}
	}
	release, _, _ := strings.Cut(p.info.GoVersion, " ")
	fips140 := cmp.Or(p.setting("GOFIPS140"), "off")
	version := p.version()
	switch {
	case p.revision() == "":
		return "", errors.New("does not name its commit: it was not built by make image in a git clone")
	case p.modified():
		return "", fmt.Errorf("was built from a tree with changes that are not in commit %s: nobody can rebuild it", p.revision())
	case !wholeRevision.MatchString(p.revision()), version != "" && !plainWord.MatchString(version),
		!plainWord.MatchString(release), !plainWord.MatchString(fips140):
		return "", fmt.Errorf("claims the commit %q, version %q, Go release %q and GOFIPS140=%q, which make image does not make",
			p.revision(), version, release, fips140)
	}
	line := fmt.Sprintf("%s %s %s %s %s", p.revision(), release, fips140, strings.Join(platforms, ","), version)
	return strings.TrimSpace(line), nil
}

// sizeLimit is larger than the uncompressed size of any image of this project. It limits
// the memory that reading an unknown image takes.
const sizeLimit = 1 << 30

// programIn returns the program of an image. The caller puts the image before the error's
// text.
func programIn(image v1.Image) ([]byte, error) {
	files := mutate.Extract(image)
	defer files.Close()
	for archive := tar.NewReader(io.LimitReader(files, sizeLimit)); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("has no file /" + programName)
		case err != nil:
			return nil, fmt.Errorf("is unreadable, or larger than %d bytes: %w", sizeLimit, err)
		case path.Clean("/"+header.Name) == "/"+programName:
			return io.ReadAll(archive)
		}
	}
}

// compare compares an image with the one in a folder, an OCI layout. If they differ, it
// returns an error that lists the digests of each that the other lacks.
func compare(out io.Writer, image string, published described, folder string) error {
	rebuilt, err := readLayout(folder)
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder, err)
	}
	was, errWas := published.Digest()
	is, errIs := rebuilt.Digest()
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	if was == is {
		fmt.Fprintf(out, "Verified: the commit makes %s, too.\n", is)
		return nil
	}
	parts, errWas := digestsOf(published)
	rebuiltParts, errIs := digestsOf(rebuilt)
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("%s is not what its commit makes, which is %s:", image, is)}
	for _, part := range parts {
		if !slices.Contains(rebuiltParts, part) {
			lines = append(lines, "published: "+part)
		}
	}
	for _, part := range rebuiltParts {
		if !slices.Contains(parts, part) {
			lines = append(lines, "rebuilt:   "+part)
		}
	}
	return errors.New(strings.Join(lines, "\n  "))
}

// readLayout returns the only image or index in an OCI layout.
func readLayout(folder string) (described, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d images, not one", len(manifest.Manifests))
	}
	about := manifest.Manifests[0]
	if about.MediaType.IsIndex() {
		return index.ImageIndex(about.Digest)
	}
	return index.Image(about.Digest)
}

// digestsOf lists everything in an image or an index that has a digest: the index, and of
// each platform the image, its config and its layers.
func digestsOf(whole described) ([]string, error) {
	var all []string
	if index, isIndex := whole.(v1.ImageIndex); isIndex {
		digest, err := index.Digest()
		if err != nil {
			return nil, err
		}
		all = append(all, "index "+digest.String())
	}
	images, err := imagesIn(whole)
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		manifest, err := image.Manifest()
		if err != nil {
			return nil, err
		}
		all = append(all, image.platform+": image "+digest.String(), image.platform+": config "+manifest.Config.Digest.String())
		for i, layer := range manifest.Layers {
			all = append(all, fmt.Sprintf("%s: layer %d %s", image.platform, i+1, layer.Digest))
		}
	}
	return all, nil
}
