// SPDX-License-Identifier: Apache-2.0

// Images and indexes, and the files in their layers.

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerLimit is larger than the uncompressed size of any layer of this project's images.
// It limits the memory that verifying an unknown image takes.
const layerLimit = 1 << 30

// artifact is an image, or an index of images for several platforms.
type artifact struct {
	digest    v1.Hash
	manifest  []byte
	isIndex   bool
	images    []v1.Image
	platforms []string // of the images
}

// fetched is an image or an index in a registry or a layout.
type fetched interface {
	Image() (v1.Image, error)
	ImageIndex() (v1.ImageIndex, error)
}

func artifactOf(mediaType types.MediaType, from fetched) (*artifact, error) {
	if mediaType.IsIndex() {
		return artifactOfIndex(from)
	}
	image, err := from.Image()
	if err != nil {
		return nil, err
	}
	a := &artifact{images: []v1.Image{image}}
	if a.digest, err = image.Digest(); err != nil {
		return nil, err
	}
	if a.manifest, err = image.RawManifest(); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	a.platforms = []string{config.Platform().String()}
	return a, nil
}

func artifactOfIndex(from fetched) (*artifact, error) {
	index, err := from.ImageIndex()
	if err != nil {
		return nil, err
	}
	a := &artifact{isIndex: true}
	if a.digest, err = index.Digest(); err != nil {
		return nil, err
	}
	if a.manifest, err = index.RawManifest(); err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
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
		a.images, a.platforms = append(a.images, image), append(a.platforms, platform)
	}
	return a, nil
}

// file is a file in a layer.
type file struct {
	name    string
	about   string // owner, mode and so on
	content []byte
}

// filesIn returns the files of a layer. Several may have the same name.
func filesIn(layer v1.Layer) (files []file, err error) {
	unpacked, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unpacked.Close()) }()
	limited := &io.LimitedReader{R: unpacked, N: layerLimit}
	for archive := tar.NewReader(limited); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err == nil {
			var content []byte
			content, err = io.ReadAll(archive)
			files = append(files, file{name: header.Name, about: about(header), content: content})
		}
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("a layer has more than %d bytes", layerLimit)
		case err != nil:
			return nil, err
		}
	}
}

// about returns everything in a tar header except name and size.
func about(header *tar.Header) string {
	return fmt.Sprintf("type %q, mode %o, owner %d:%d %q:%q, time %s, link %q, device %d:%d, more %q", header.Typeflag, header.Mode,
		header.Uid, header.Gid, header.Uname, header.Gname, header.ModTime.UTC(), header.Linkname, header.Devmajor, header.Devminor, header.PAXRecords)
}

// programIn returns the program of an image. The caller puts the image before the error's
// text.
func programIn(image v1.Image) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("has unreadable layers: %w", err)
	}
	for _, layer := range layers {
		files, err := filesIn(layer)
		if err != nil {
			return nil, fmt.Errorf("has an unreadable layer: %w", err)
		}
		for _, file := range files {
			if path.Clean("/"+file.name) == "/"+programName {
				return file.content, nil
			}
		}
	}
	return nil, errors.New("has no file /" + programName)
}
