// SPDX-License-Identifier: Apache-2.0

// Pushing an image, and the checks before it.

package main

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// registryOptions returns the options of all requests to a registry. The credentials are
// those of "docker login".
func registryOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push pushes the image to its registry. For each platform it also pushes the bill of
// materials, as a referrer of that platform's image, where scanners look for it.
func push(ctx context.Context, tag name.Tag, images []*platformImage, whole described, force bool) error {
	if !force {
		if err := errors.Join(checkCommit(images[0].program), checkTag(ctx, tag, whole)); err != nil {
			return err
		}
	}
	options := registryOptions(ctx)
	if err := remote.Push(tag, whole, options...); err != nil {
		return err
	}
	for _, image := range images {
		document, err := bomOf(image.program)
		if err != nil {
			return err
		}
		about, err := newReferrer(image, bomFile(image.program), bomType, document)
		if err != nil {
			return err
		}
		digest, err := about.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(tag.Digest(digest.String()), about, options...); err != nil {
			return fmt.Errorf("%s: %w", bomFile(image.program), err)
		}
	}
	return nil
}

// checkCommit refuses a program that was not built from a clean commit, because nobody
// could rebuild it, so -verify could not check the image.
func checkCommit(p *program) error {
	switch {
	case p.revision() == "":
		return errors.New("the build found no git commit, so nobody could verify the image: build it in a clone, or push it nevertheless with FORCE=1 (-force)")
	case p.modified():
		return fmt.Errorf("the tree has changes that are not in commit %s, so nobody could verify the image: commit them, see git status, or push it nevertheless with FORCE=1 (-force)", p.revision())
	}
	return nil
}

// checkRelease refuses a program of an older Go release than the one that go.mod names,
// because it lacks fixes of the standard library, which is a part of it.
func checkRelease(p *program, named string) error {
	release, _, _ := strings.Cut(p.info.GoVersion, " ")
	if named == "" || version.Compare(release, named) >= 0 {
		return nil
	}
	return fmt.Errorf("the program was built with %s, which lacks fixes of %s, the release in go.mod: repeat with GOTOOLCHAIN=%[2]s in the environment, or push it nevertheless with FORCE=1 (-force)", release, named)
}

// checkTag returns an error if the tag belongs to another image. Somebody else may still
// set the tag between this check and the push; only a registry with immutable tags
// prevents that.
func checkTag(ctx context.Context, tag name.Tag, whole described) error {
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
		return fmt.Errorf("the tag is taken by %s, and this image is %s: choose another tag, or replace that image with FORCE=1 (-force)", there.Digest, digest)
	}
	return nil
}
