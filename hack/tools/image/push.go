/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the image to its registry, and for each platform the document of
// what it is made of, as a referrer of that platform's image: there scanners
// look for it. The credentials are those of "docker login".
func push(ctx context.Context, tag name.Tag, images []*platformImage, whole described) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
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
