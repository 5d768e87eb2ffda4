// SPDX-License-Identifier: Apache-2.0

// The parts of an image: the images of an index, their configs and layers.

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// layerLimit is larger than the uncompressed size of any layer of this project's images.
// It limits the memory that verifying an unknown image takes.
const layerLimit = 1 << 30

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

// part is something with a digest.
type part struct {
	name   string
	digest string
}

// partsOf returns everything in an image or an index that has a digest.
func partsOf(whole described) ([]part, error) {
	var parts []part
	if index, isIndex := whole.(v1.ImageIndex); isIndex {
		digest, err := index.Digest()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{"index", digest.String()})
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
		parts = append(parts, part{image.platform + ": image", digest.String()}, part{image.platform + ": config", manifest.Config.Digest.String()})
		for i, layer := range manifest.Layers {
			parts = append(parts, part{fmt.Sprintf("%s: layer %d", image.platform, i+1), layer.Digest.String()})
		}
	}
	return parts, nil
}

// differences lists the parts whose digests differ, one per line.
func differences(published, rebuilt described) ([]string, error) {
	got, err := partsOf(published)
	if err != nil {
		return nil, err
	}
	want, err := partsOf(rebuilt)
	if err != nil {
		return nil, err
	}
	made := map[string]string{}
	for _, part := range want {
		made[part.name] = part.digest
	}
	var lines []string
	for _, part := range got {
		switch digest, isMade := made[part.name]; {
		case !isMade:
			lines = append(lines, fmt.Sprintf("%s is %s, the commit makes none", part.name, part.digest))
		case digest != part.digest:
			lines = append(lines, fmt.Sprintf("%s is %s, the commit makes %s", part.name, part.digest, digest))
		}
		delete(made, part.name)
	}
	for _, part := range want {
		if digest, isMissing := made[part.name]; isMissing {
			lines = append(lines, fmt.Sprintf("%s is missing, the commit makes %s", part.name, digest))
		}
	}
	return lines, nil
}

// programIn returns the program of an image. The caller puts the image before the error's
// text.
func programIn(image v1.Image) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("has unreadable layers: %w", err)
	}
	for _, layer := range layers {
		content, err := programInLayer(layer)
		if err != nil {
			return nil, fmt.Errorf("has a layer that is unreadable or larger than %d bytes: %w", layerLimit, err)
		}
		if content != nil {
			return content, nil
		}
	}
	return nil, errors.New("has no file /" + programName)
}

// programInLayer returns the program, or nil if the layer does not have it.
func programInLayer(layer v1.Layer) (content []byte, err error) {
	unpacked, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unpacked.Close()) }()
	for archive := tar.NewReader(io.LimitReader(unpacked, layerLimit)); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		case path.Clean("/"+header.Name) == "/"+programName:
			return io.ReadAll(archive)
		}
	}
}
