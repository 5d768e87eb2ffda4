// SPDX-License-Identifier: Apache-2.0

// Referrers: documents about an image in a registry.

package main

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
