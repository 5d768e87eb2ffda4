// SPDX-License-Identifier: Apache-2.0

// The image of each platform: config, annotations and its only layer, with the files in
// it.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
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

// layerOf returns a layer with the program and its license texts.
func layerOf(p *program) (v1.Layer, error) {
	var archive bytes.Buffer
	if err := writeTar(&archive, append([]namedFile{{programName, p.content}}, p.licenses...), timestamp(p)); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// writeTar writes an archive of the files. It sets owner, mode and times itself, so that
// they do not depend on a file system.
func writeTar(to io.Writer, files []namedFile, modified time.Time) error {
	archive := tar.NewWriter(to)
	for _, file := range files {
		header := tar.Header{Name: file.path, Size: int64(len(file.content)), Mode: 0o644, ModTime: modified, Format: tar.FormatUSTAR}
		if file.path == programName {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(file.content); err != nil {
			return err
		}
	}
	return archive.Close()
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
