// SPDX-License-Identifier: Apache-2.0

// What an image of a registry says about its build. hack/image.sh -verify builds the image
// again, and compares the digests.

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
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fetch returns the image or the index NAME@DIGEST in a registry. What the registry sends has
// that digest, or fetch returns an error.
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

// imagesIn returns the images of an index with their platforms, such as linux/amd64, or an
// image alone.
func imagesIn(whole described) (images []v1.Image, platforms []string, err error) {
	index, isIndex := whole.(v1.ImageIndex)
	if !isIndex {
		image := whole.(v1.Image)
		config, err := image.ConfigFile()
		if err != nil {
			return nil, nil, err
		}
		return []v1.Image{image}, []string{config.Platform().String()}, nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range manifest.Manifests {
		if !entry.MediaType.IsImage() {
			return nil, nil, fmt.Errorf("the index contains %s, a %s: make image adds only images", entry.Digest, entry.MediaType)
		}
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, nil, err
		}
		platform := "unknown"
		if entry.Platform != nil {
			platform = entry.Platform.String()
		}
		images, platforms = append(images, image), append(platforms, platform)
	}
	return images, platforms, nil
}

// claimsOf returns what an image or an index says about its build: commit, Go release,
// GOFIPS140, platforms and version, if any. All but the platforms are read from the first
// program. They are not trusted: they only determine what to build, and the result must be
// the same image. The caller puts the image before the error's text.
func claimsOf(whole described) (string, error) {
	images, platforms, err := imagesIn(whole)
	if err != nil {
		return "", fmt.Errorf("is unreadable: %w", err)
	}
	if len(images) == 0 {
		return "", errors.New("has no image")
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
