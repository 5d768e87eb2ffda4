// SPDX-License-Identifier: Apache-2.0

// The image of each platform: config, annotations and its only layer, with the files in
// it.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The config that every image of the controller has. The Dockerfile sets the same.
const (
	programName = "sample-controller"
	// An arbitrary user without privileges. It is a number, because the image has no
	// /etc/passwd, and because for runAsNonRoot the kubelet can't check a name.
	user        = "65532:65532"
	description = "Kubernetes controller for Foos"
	license     = "Apache-2.0"
)

// labelPrefix is the prefix of the keys that the OCI image specification defines.
const labelPrefix = "org.opencontainers.image."

// platformImage is the image for one platform, and its program.
type platformImage struct {
	v1.Image
	program *program
}

// labels returns the image's metadata. The image has them twice: as labels of its config,
// which a container inherits, and as annotations of its manifest, which clients can read
// without fetching the config.
func labels(p *program) map[string]string {
	all := map[string]string{
		labelPrefix + "title":       programName,
		labelPrefix + "description": description,
		labelPrefix + "licenses":    license,
		labelPrefix + "source":      "https://" + p.info.Main.Path,
	}
	if p.version() != "" {
		all[labelPrefix+"version"] = p.version()
	}
	if p.revision() != "" {
		all[labelPrefix+"revision"] = p.revision()
	}
	if committed := p.committed(); !committed.IsZero() {
		all[labelPrefix+"created"] = committed.Format(time.RFC3339)
	}
	return all
}

// timestamp returns the time that the image has wherever its format needs one: the
// commit's, or without a commit the earliest that every reader accepts.
func timestamp(p *program) time.Time {
	if committed := p.committed(); !committed.IsZero() {
		return committed
	}
	return time.Unix(0, 0).UTC()
}

// newPlatformImage makes an image with the program and its license texts. It has no CA
// certificates, because the API server's comes with the service account or the
// kubeconfig, and no users, shell or temporary folder.
func newPlatformImage(p *program) (*platformImage, error) {
	layer, err := layerOf(p)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: timestamp(p)}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS:           p.platform.OS,
		Architecture: p.platform.Architecture,
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       user,
			WorkingDir: "/",
			Entrypoint: []string{"/" + programName},
			Labels:     labels(p),
		},
	})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: created, CreatedBy: "COPY " + programName + " " + licensesFolder + " /", Comment: "the program, and the license texts of what it links"},
	})
	if err != nil {
		return nil, err
	}
	return &platformImage{Image: mutate.Annotations(image, labels(p)).(v1.Image), program: p}, nil
}

// layerOf returns a layer with the program and its license texts. It sets owner, mode and times itself, so that
// they do not depend on the file system.
func layerOf(p *program) (v1.Layer, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	for i, file := range append([]namedFile{{programName, p.content}}, p.licenses...) {
		mode := int64(0o644)
		if i == 0 {
			mode = 0o755
		}
		if err := archive.WriteHeader(&tar.Header{
			Name:    file.path,
			Size:    int64(len(file.content)),
			Mode:    mode,
			ModTime: timestamp(p),
			Format:  tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// described is an image or an index of images.
type described interface {
	partial.Describable
	partial.WithRawManifest
}

// combine returns the image if there is only one. Otherwise it returns an index, from
// which a runtime chooses the image for its platform.
func combine(images []*platformImage) described {
	if len(images) == 1 {
		return images[0].Image
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image.Image,
			Descriptor: v1.Descriptor{Platform: &image.program.platform},
		})
	}
	return mutate.Annotations(index, labels(images[0].program)).(v1.ImageIndex)
}

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
