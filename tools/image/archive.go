// SPDX-License-Identifier: Apache-2.0

// The image as an archive: an OCI layout that docker load can also read.

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

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
