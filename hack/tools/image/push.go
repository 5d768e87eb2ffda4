// SPDX-License-Identifier: Apache-2.0

// Pushing an image after checks, and reading what an image in a registry claims, for hack/image.sh
// -verify.

package main

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// registryOptions returns the options of all requests to a registry. The credentials come from
// "docker login".
func registryOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push pushes the image to its registry. Without force, it first checks the tag and one of its
// programs, which must be built with the Go release or a newer one.
func push(ctx context.Context, tag name.Tag, p *program, whole v1.ImageIndex, release string, force bool) error {
	if !force {
		if err := errors.Join(checkCommit(p), checkRelease(p, release), checkTag(ctx, tag, whole)); err != nil {
			return err
		}
	}
	return remote.Push(tag, whole, registryOptions(ctx)...)
}

// checkCommit refuses a program that was not built from a clean commit, because -verify could not
// rebuild it.
func checkCommit(p *program) error {
	switch revision := p.setting("vcs.revision"); {
	case revision == "":
		return errors.New("the build found no git commit, so the image could not be verified: build it in a clone, or push it anyway with FORCE=1 (-force)")
	case p.setting("vcs.modified") == "true":
		return fmt.Errorf("the tree has changes that are not in commit %s, so the image could not be verified: commit them (see git status), or push the image anyway with FORCE=1 (-force)", revision)
	}
	return nil
}

// checkRelease refuses a program that was built with an older Go release than the one in go.mod,
// because its standard library lacks fixes.
func checkRelease(p *program, named string) error {
	release := p.release()
	if version.Compare(release, named) >= 0 {
		return nil
	}
	return fmt.Errorf("the program was built with %s, which lacks fixes of %s, the release in go.mod: repeat with GOTOOLCHAIN=%[2]s in the environment, or push the image anyway with FORCE=1 (-force)", release, named)
}

// checkTag returns an error if the tag belongs to another image. Another push may still set the
// tag after this check; only a registry with immutable tags prevents that.
func checkTag(ctx context.Context, tag name.Tag, whole v1.ImageIndex) error {
	digest, err := whole.Digest()
	if err != nil {
		return err
	}
	there, err := remote.Head(tag, registryOptions(ctx)...)
	var failed *transport.Error
	switch {
	case errors.As(err, &failed) && failed.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return fmt.Errorf("checking whether the tag is taken: %w (FORCE=1, or -force, skips the check)", err)
	case there.Digest != digest:
		return fmt.Errorf("the tag belongs to %s, but this image is %s: choose another tag, or replace the image with FORCE=1 (-force)", there.Digest, digest)
	}
	return nil
}

// claimsOf returns what the annotations of the index NAME@DIGEST in a registry say about its build.
// It returns an error if the content has another digest.
func claimsOf(ctx context.Context, image string) (string, error) {
	reference, err := name.NewDigest(image)
	if err != nil {
		return "", fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	index, err := remote.Index(reference, registryOptions(ctx)...)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", image, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", image, err)
	}
	line, err := claims(manifest)
	if err != nil {
		return "", fmt.Errorf("%s %w", image, err)
	}
	return line, nil
}

// plainClaims matches a line of claims whose words are safe to pass to git and the go command: the commit
// is a SHA-1 or SHA-256, as git writes them.
var plainClaims = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})( [A-Za-z0-9][\w.+-]*){2} linux/[a-z0-9]+(,linux/[a-z0-9]+)*( [A-Za-z0-9][\w.+-]*)?$`)

// claims returns commit, Go release, GOFIPS140, platforms and version, if any. They are not trusted:
// they only determine what to build, and the result must be the same index. The caller puts the image
// before the error's text.
func claims(index *v1.IndexManifest) (string, error) {
	revision, version := index.Annotations[labelPrefix+"revision"], index.Annotations[labelPrefix+"version"]
	switch {
	case revision == "":
		return "", errors.New("does not name its commit: it was not built by make image in a git clone")
	case strings.HasSuffix(version, "+dirty"):
		return "", fmt.Errorf("was built from a tree with changes that are not in commit %s: it can't be rebuilt", revision)
	}
	var platforms []string
	for _, image := range index.Manifests {
		if image.Platform != nil {
			platforms = append(platforms, image.Platform.String())
		}
	}
	module := strings.TrimPrefix(index.Annotations[labelPrefix+"source"], "https://")
	line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", revision,
		index.Annotations[module+releaseKey], index.Annotations[module+fips140Key], strings.Join(platforms, ","), version))
	if !plainClaims.MatchString(line) {
		return "", fmt.Errorf("claims %q, which make image never writes", line)
	}
	return line, nil
}
