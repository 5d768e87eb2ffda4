// SPDX-License-Identifier: Apache-2.0

// Writing an image to a folder, pushing it with its bills of materials, and the checks
// before that.

package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// noConfig is the config that the OCI specification prescribes for artifacts that are not
// images.
const noConfig = "{}"

// referrer is a manifest with one file, which describes an image.
type referrer struct {
	manifest []byte
	file     v1.Layer
}

// newReferrer makes a file a referrer of subject. Clients save the file under the name.
func newReferrer(subject v1.Image, name string, mediaType types.MediaType, content []byte) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	file := static.NewLayer(content, mediaType)
	layer, err := partial.Descriptor(file)
	if err != nil {
		return nil, err
	}
	layer.Annotations = map[string]string{labelPrefix + "title": name}
	config, err := partial.Descriptor(static.NewLayer([]byte(noConfig), types.OCIEmptyJSON))
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  string(mediaType),
		Config:        *config,
		Layers:        []v1.Descriptor{*layer},
		Subject:       &v1.Descriptor{MediaType: about.MediaType, Size: about.Size, Digest: about.Digest},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&referrer{manifest: manifest, file: file})
}

// RawConfigFile implements partial.CompressedImageCore.
func (*referrer) RawConfigFile() ([]byte, error) { return []byte(noConfig), nil }

// MediaType implements partial.CompressedImageCore.
func (*referrer) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (r *referrer) RawManifest() ([]byte, error) { return r.manifest, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (r *referrer) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	own, err := r.file.Digest()
	if err == nil && own != digest {
		err = fmt.Errorf("no layer %v", digest)
	}
	return r.file, err
}

// write writes an archive of the image, and a bill of materials of each program, to
// folder. It returns the path of the archive.
func write(folder string, tag name.Tag, images []*platformImage, whole described) (path string, err error) {
	for _, image := range images {
		document, err := bomOf(image.program)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, bomFile(image.program)), document, 0o644); err != nil {
			return "", err
		}
	}
	path = filepath.Join(folder, programName+".tar")
	// Write a new file and rename it, so that the archive is never incomplete.
	file, err := os.CreateTemp(folder, ".image-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(file.Name())) }()
	err = errors.Join(writeArchive(file, tag, images, whole), file.Chmod(0o644), file.Close())
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, os.Rename(file.Name(), path)
}

// writeArchive writes a tar file that is an OCI image layout. For a single platform it
// also has the format of "docker save"; each reader uses the format that it knows.
func writeArchive(to io.Writer, tag name.Tag, images []*platformImage, whole described) (err error) {
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writeLayout(folder, tag, whole); err != nil {
		return err
	}
	if len(images) == 1 {
		if err := writeDockerManifest(folder, tag, images[0]); err != nil {
			return err
		}
	}
	archive := tar.NewWriter(to)
	// Sort by name, and set nothing that depends on the file system.
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			return err
		}
		header := tar.Header{Name: path, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}

// writeLayout writes an OCI image layout that contains only the image. podman and skopeo
// refuse a layout with several manifests, because they can't choose one.
func writeLayout(folder string, tag name.Tag, whole described) error {
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	switch whole := whole.(type) {
	case v1.Image:
		err = path.WriteImage(whole)
	case v1.ImageIndex:
		err = path.WriteIndex(whole)
	default:
		err = fmt.Errorf("neither an image nor an index: %T", whole)
	}
	if err != nil {
		return err
	}
	about, err := partial.Descriptor(whole)
	if err != nil {
		return err
	}
	return path.AppendDescriptor(v1.Descriptor{
		MediaType: about.MediaType,
		Size:      about.Size,
		Digest:    about.Digest,
		Annotations: map[string]string{
			labelPrefix + "ref.name":   tag.String(),  // podman, skopeo
			"io.containerd.image.name": fullName(tag), // containerd, and so docker and kind
		},
	})
}

// fullName returns the name with the registry, which is Docker's by default. Docker and
// containerd spell Docker's registry differently from the library.
func fullName(tag name.Tag) string {
	return strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// writeDockerManifest adds the file in which crane, and Docker without the containerd
// image store, find config and layers.
func writeDockerManifest(folder string, tag name.Tag, image *platformImage) error {
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
	return os.WriteFile(filepath.Join(folder, "manifest.json"), content, 0o644)
}
