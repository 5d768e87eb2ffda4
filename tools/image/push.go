// SPDX-License-Identifier: Apache-2.0

// Writing an image to a directory, and pushing it after checks. Also reading the build information of an image in a registry, which hack/image.sh -verify rebuilds.

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// registryOptions returns the options of all requests to a registry. The credentials come from
// "docker login".
func registryOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push pushes the image to its registry. Without force, it first checks the tag and the programs, which must be built with the Go release
// or a newer one.
func push(ctx context.Context, tag name.Tag, images []*platformImage, whole v1.ImageIndex, release string, force bool) error {
	if !force {
		p := images[0].program
		if err := errors.Join(checkCommit(p), checkRelease(p, release), checkTag(ctx, tag, whole)); err != nil {
			return err
		}
	}
	return remote.Push(tag, whole, registryOptions(ctx)...)
}

// checkCommit refuses a program that was not built from a clean commit, because -verify could not
// rebuild it.
func checkCommit(p *program) error {
	switch {
	case p.revision() == "":
		return errors.New("the build found no git commit, so the image could not be verified: build it in a clone, or push it anyway with FORCE=1 (-force)")
	case p.modified():
		return fmt.Errorf("the tree has changes that are not in commit %s, so the image could not be verified: commit them (see git status), or push the image anyway with FORCE=1 (-force)", p.revision())
	}
	return nil
}

// checkRelease refuses a program that was built with an older Go release than the one in go.mod,
// because its standard library lacks fixes.
func checkRelease(p *program, named string) error {
	release, _, _ := strings.Cut(p.info.GoVersion, " ")
	if named == "" || version.Compare(release, named) >= 0 {
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

// write writes an archive of the image to dir, and returns its path.
func write(dir string, tag name.Tag, images []*platformImage, whole v1.ImageIndex) (string, error) {
	archive, err := newArchive(tag, images, whole)
	if err != nil {
		return "", fmt.Errorf("making an archive of the image: %w", err)
	}
	path := filepath.Join(dir, programName+".tar")
	// Write a new file and rename it, so that the archive is never incomplete.
	if err := os.WriteFile(path+".new", archive, 0o644); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// newArchive returns a tar file with an OCI image layout. For a single platform, it also has the
// format of "docker save"; each reader uses the format that it knows.
func newArchive(tag name.Tag, images []*platformImage, whole v1.ImageIndex) (archive []byte, err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The layout contains only this image, because podman and skopeo can't choose one.
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	names := layout.WithAnnotations(map[string]string{
		labelPrefix + "ref.name":   tag.String(),  // podman, skopeo
		"io.containerd.image.name": fullName(tag), // containerd, and so docker and kind
	})
	err = path.AppendIndex(whole, names)
	if err == nil && len(images) == 1 {
		err = writeDockerManifest(dir, tag, images[0])
	}
	if err != nil {
		return nil, err
	}
	files, err := readFiles(os.DirFS(dir), ".")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = writeTar(&text, files, time.Unix(0, 0))
	return text.Bytes(), err
}

// fullName returns the name with the registry, which is Docker's by default. Docker and
// containerd spell Docker's registry differently from the library.
func fullName(tag name.Tag) string {
	return strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// writeDockerManifest adds the file in which crane, and Docker without the containerd
// image store, find config and layers.
func writeDockerManifest(dir string, tag name.Tag, image *platformImage) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	blob := func(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }
	entry := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{tag.String()}}
	for _, layer := range manifest.Layers {
		entry.Layers = append(entry.Layers, blob(layer.Digest))
	}
	content, err := json.Marshal(tarball.Manifest{entry})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), content, 0o644)
}

// claimsOf returns the build information in the index NAME@DIGEST in a registry: commit, Go release,
// GOFIPS140, platforms and version, if any. Except for the platforms, it comes from the first
// program. It is not trusted: it only determines what to build, and the result must be the same
// index. It returns an error if the content has another digest.
func claimsOf(ctx context.Context, name string) (string, error) {
	images, err := fetch(ctx, name)
	if err != nil {
		return "", err
	}
	var platforms []string
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return "", fmt.Errorf("fetching %s: %w", name, err)
		}
		platforms = append(platforms, config.Platform().String())
	}
	content, err := programIn(images[0])
	if err != nil {
		return "", fmt.Errorf("%s %w", name, err)
	}
	p, err := newProgram(content)
	if err != nil {
		return "", fmt.Errorf("%s has a %s that the go command did not build: %w", name, programName, err)
	}
	claims, err := p.claims(platforms)
	if err != nil {
		return "", fmt.Errorf("%s %w", name, err)
	}
	return claims, nil
}

// fetch returns the images of an index in a registry, of which there is at least one.
func fetch(ctx context.Context, image string) ([]v1.Image, error) {
	reference, err := name.NewDigest(image)
	if err != nil {
		return nil, fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	index, err := remote.Index(reference, registryOptions(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", image, err)
	}
	images, err := partial.FindImages(index, func(v1.Descriptor) bool { return true })
	if err == nil && len(images) == 0 {
		err = errors.New("it has no image")
	}
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", image, err)
	}
	return images, nil
}

// plainClaims matches a line of claims whose words are safe to pass to git and the go command: the commit
// is a SHA-1 or SHA-256, as git writes them.
var plainClaims = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})( [A-Za-z0-9][\w.+-]*){2} linux/[a-z0-9]+(,linux/[a-z0-9]+)*( [A-Za-z0-9][\w.+-]*)?$`)

// claims returns the line of claims. The caller puts the image before the error's text.
func (p *program) claims(platforms []string) (string, error) {
	switch {
	case p.revision() == "":
		return "", errors.New("does not name its commit: it was not built by make image in a git clone")
	case p.modified():
		return "", fmt.Errorf("was built from a tree with changes that are not in commit %s: it can't be rebuilt", p.revision())
	}
	release, _, _ := strings.Cut(p.info.GoVersion, " ")
	line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s",
		p.revision(), release, cmp.Or(p.setting("GOFIPS140"), "off"), strings.Join(platforms, ","), p.version()))
	if !plainClaims.MatchString(line) {
		return "", fmt.Errorf("claims %q, which make image never writes", line)
	}
	return line, nil
}

// sizeLimit is larger than any uncompressed image of this project. It limits the memory for
// reading an unknown image.
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
