// SPDX-License-Identifier: Apache-2.0

// Verifying an image by rebuilding it.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// claims are what an image says about its build. They are not trusted: they only
// determine what to build, and the result must be the same image.
type claims struct {
	revision  string
	version   string // of the module, empty if the build did not know it
	release   string // of Go, such as go1.26.0
	fips140   string // the setting GOFIPS140
	platforms []string
}

// verify builds the commit that an image in a registry names. If the result is another
// image, it returns an error that lists the digests that differ.
func verify(ctx context.Context, out io.Writer, image string) error {
	reference, err := name.NewDigest(image)
	if err != nil {
		return fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	published, err := fetch(ctx, reference)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", reference, err)
	}
	claimed, err := claimsOf(published)
	if err != nil {
		return fmt.Errorf("%s %w", reference, err)
	}
	fmt.Fprintf(out, "%s\nnames commit %s, version %s, %s and the platforms %s.\nRebuilding the commit:\n",
		reference, claimed.revision, cmp.Or(claimed.version, "unknown"), claimed.release, strings.Join(claimed.platforms, ", "))
	folder, err := os.MkdirTemp("", "verify-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	rebuilt, err := rebuild(ctx, folder, claimed)
	if err != nil {
		return err
	}
	digest, err := rebuilt.Digest()
	if err != nil {
		return err
	}
	if digest.String() == reference.DigestStr() {
		fmt.Fprintf(out, "Verified: the commit makes %s, too.\n", digest)
		return nil
	}
	differing, err := differences(published, rebuilt)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is not what commit %s makes, which is %s:\n  %s", reference, claimed.revision, digest, strings.Join(differing, "\n  "))
}

// fetch returns an image or an index in a registry.
func fetch(ctx context.Context, reference name.Digest) (described, error) {
	descriptor, err := remote.Get(reference, registryOptions(ctx)...)
	if err != nil {
		return nil, err
	}
	if descriptor.MediaType.IsIndex() {
		return descriptor.ImageIndex()
	}
	return descriptor.Image()
}

var (
	// A SHA-1 or SHA-256, as git writes them.
	wholeRevision = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	plainWord     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	linuxPlatform = regexp.MustCompile(`^linux/[a-z0-9]+$`)
)

// claimsOf returns what an image or an index says about its build: commit and version from
// its labels, the rest from its program, which must name the same commit. The caller puts
// the image before the error's text.
func claimsOf(whole described) (claims, error) {
	images, err := imagesIn(whole)
	if err != nil {
		return claims{}, fmt.Errorf("is unreadable: %w", err)
	}
	if len(images) == 0 {
		return claims{}, errors.New("has no image")
	}
	file, err := images[0].ConfigFile()
	if err != nil {
		return claims{}, fmt.Errorf("has an unreadable config: %w", err)
	}
	c := claims{revision: file.Config.Labels[labelPrefix+"revision"], version: file.Config.Labels[labelPrefix+"version"]}
	switch {
	case c.revision == "":
		return c, errors.New("does not name its commit: it has no label " + labelPrefix + "revision, so it was not built by make image in a git clone")
	case !wholeRevision.MatchString(c.revision):
		return c, fmt.Errorf("has the label %srevision=%q, which is not a commit", labelPrefix, c.revision)
	case c.version != "" && !plainWord.MatchString(c.version):
		return c, fmt.Errorf("has the label %sversion=%q, which is not a version", labelPrefix, c.version)
	case strings.HasSuffix(c.version, "+dirty"):
		return c, fmt.Errorf("is version %s, built from a tree with uncommitted changes: nobody can rebuild it", c.version)
	}
	for _, image := range images {
		if !linuxPlatform.MatchString(image.platform) {
			return c, fmt.Errorf("is for the platform %q, which make image does not support", image.platform)
		}
		c.platforms = append(c.platforms, image.platform)
	}
	content, err := programIn(images[0])
	if err != nil {
		return c, err
	}
	p, err := newProgram(content)
	if err != nil {
		return c, fmt.Errorf("has a %s that the go command did not build: %w", programName, err)
	}
	return c, c.fromProgram(p)
}

// fromProgram reads the claims of an image's program.
func (c *claims) fromProgram(p *program) error {
	c.release, _, _ = strings.Cut(p.info.GoVersion, " ")
	c.fips140 = p.setting("GOFIPS140")
	switch {
	case p.modified():
		return fmt.Errorf("has a program built from a tree with changes that are not in commit %s: nobody can rebuild it", c.revision)
	case p.revision() != c.revision:
		return fmt.Errorf("contradicts itself: its label names commit %s, but its program %q", c.revision, p.revision())
	case !plainWord.MatchString(c.release) || c.fips140 != "" && !plainWord.MatchString(c.fips140):
		return fmt.Errorf("has a program with an invalid Go release %q or GOFIPS140=%q", c.release, c.fips140)
	}
	return nil
}
