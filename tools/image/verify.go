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
// image, it returns an error that lists the differences.
func verify(ctx context.Context, out io.Writer, image string) error {
	reference, err := name.NewDigest(image)
	if err != nil {
		return fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	descriptor, err := remote.Get(reference, registryOptions(ctx)...)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", reference, err)
	}
	published, err := artifactOf(descriptor.MediaType, descriptor)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", reference, err)
	}
	claimed, err := published.claims()
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
	if rebuilt.digest == published.digest {
		fmt.Fprintf(out, "Verified: the commit makes %s, too.\n", rebuilt.digest)
		return nil
	}
	found, err := differences(published, rebuilt)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is not what commit %s makes, which is %s:\n  %s", reference, claimed.revision, rebuilt.digest, strings.Join(found, "\n  "))
}

var (
	// A SHA-1 or SHA-256, as git writes them.
	wholeRevision = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	plainWord     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	linuxPlatform = regexp.MustCompile(`^linux/[a-z0-9]+$`)
)

// claims returns what the image says about its build: commit and version from its labels,
// the rest from its program, which must name the same commit. The caller puts the image
// before the error's text.
func (a *artifact) claims() (claims, error) {
	if len(a.images) == 0 {
		return claims{}, errors.New("has no image")
	}
	file, err := a.images[0].ConfigFile()
	if err != nil {
		return claims{}, fmt.Errorf("has an unreadable config: %w", err)
	}
	c := claims{revision: file.Config.Labels[labelPrefix+"revision"], version: file.Config.Labels[labelPrefix+"version"], platforms: a.platforms}
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
	for _, platform := range c.platforms {
		if !linuxPlatform.MatchString(platform) {
			return c, fmt.Errorf("is for the platform %q, which make image does not support", platform)
		}
	}
	content, err := programIn(a.images[0])
	if err != nil {
		return c, err
	}
	p, err := newProgram(content)
	if err != nil {
		return c, fmt.Errorf("has a %s that the go command did not build: %w", programName, err)
	}
	c.release, _, _ = strings.Cut(p.info.GoVersion, " ")
	c.fips140 = p.setting("GOFIPS140")
	switch {
	case p.modified():
		return c, fmt.Errorf("has a program built from a tree with changes that are not in commit %s: nobody can rebuild it", c.revision)
	case p.revision() != c.revision:
		return c, fmt.Errorf("contradicts itself: its label names commit %s, but its program %q", c.revision, p.revision())
	case !plainWord.MatchString(c.release) || c.fips140 != "" && !plainWord.MatchString(c.fips140):
		return c, fmt.Errorf("has a program with an invalid Go release %q or GOFIPS140=%q", c.release, c.fips140)
	}
	return c, nil
}
