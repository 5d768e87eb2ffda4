// SPDX-License-Identifier: Apache-2.0

// The differences between a published image and its rebuild.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// listLimit is the number of differences of one kind that are listed.
const listLimit = 20

// differences lists the differences between a published artifact and the rebuilt one, one
// per line. There is at least one, because the digests differ.
func differences(published, rebuilt *artifact) ([]string, error) {
	d := &difference{}
	if published.isIndex != rebuilt.isIndex {
		kinds := map[bool]string{false: "a single image", true: "an index"}
		d.note("it is %s, the commit makes %s", kinds[published.isIndex], kinds[rebuilt.isIndex])
	} else if published.isIndex {
		if err := d.documents("index", published.manifest, rebuilt.manifest, "manifests"); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(published.platforms, rebuilt.platforms) {
		d.note("it is for %q, the commit makes %q", published.platforms, rebuilt.platforms)
	}
	for i := range min(len(published.images), len(rebuilt.images)) {
		d.platform = rebuilt.platforms[i] + ": "
		if err := d.image(published.images[i], rebuilt.images[i]); err != nil {
			return nil, fmt.Errorf("%s%w", d.platform, err)
		}
	}
	if len(d.found) == 0 {
		d.platform = ""
		d.note("the same content, but the manifests have other bytes")
	}
	return d.found, nil
}

// difference collects differences.
type difference struct {
	platform string // of the images that are compared, with a colon
	found    []string
}

func (d *difference) note(format string, arguments ...any) {
	d.found = append(d.found, d.platform+fmt.Sprintf(format, arguments...))
}

// image compares two images: manifest, config, and the layers file by file.
func (d *difference) image(published, rebuilt v1.Image) error {
	for _, part := range []struct {
		name string
		read func(v1.Image) ([]byte, error)
		but  []string // fields that are compared elsewhere
	}{
		{"manifest", v1.Image.RawManifest, []string{"config", "layers"}},
		{"config", v1.Image.RawConfigFile, []string{"rootfs"}},
	} {
		got, err := part.read(published)
		if err != nil {
			return err
		}
		want, err := part.read(rebuilt)
		if err != nil {
			return err
		}
		if err := d.documents(part.name, got, want, part.but...); err != nil {
			return err
		}
	}
	got, err := published.Layers()
	if err != nil {
		return err
	}
	want, err := rebuilt.Layers()
	if err != nil {
		return err
	}
	for i := range max(len(got), len(want)) {
		if err := d.layer(i, got, want); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return nil
}

// documents compares two JSON documents, without some of their fields.
func (d *difference) documents(name string, published, rebuilt []byte, but ...string) error {
	var got, want map[string]any
	if err := json.Unmarshal(published, &got); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(rebuilt, &want); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, key := range but {
		delete(got, key)
		delete(want, key)
	}
	d.values(name, got, want)
	return nil
}

// values compares two values of JSON, down to the fields that differ.
func (d *difference) values(at string, got, want any) {
	gotFields, ok := got.(map[string]any)
	wantFields, both := want.(map[string]any)
	if !ok || !both {
		if !reflect.DeepEqual(got, want) {
			d.note("%s is %s, the commit makes %s", at, shown(got), shown(want))
		}
		return
	}
	all := maps.Clone(gotFields)
	maps.Copy(all, wantFields)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		d.values(fmt.Sprintf("%s %q", at, key), gotFields[key], wantFields[key])
	}
}

// shown formats a value of JSON as one line of limited length.
func shown(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if len(text) > 200 {
		text = append(text[:200], "..."...)
	}
	return string(text)
}

// layer compares the two layers with a number.
func (d *difference) layer(number int, published, rebuilt []v1.Layer) error {
	var got, want []file
	var err error
	if number < len(published) {
		if got, err = filesIn(published[number]); err != nil {
			return err
		}
	}
	if number < len(rebuilt) {
		if want, err = filesIn(rebuilt[number]); err != nil {
			return err
		}
	}
	before := len(d.found)
	switch {
	case number >= len(rebuilt):
		d.note("layer %d: the commit does not make it", number+1)
	case number >= len(published):
		d.note("layer %d: missing, but the commit makes it", number+1)
	}
	d.files(number, got, want)
	if len(d.found) > before {
		return nil
	}
	gotDigest, err := published[number].Digest()
	if err != nil {
		return err
	}
	wantDigest, err := rebuilt[number].Digest()
	if err == nil && gotDigest != wantDigest {
		d.note("layer %d has the same files, but another compression or order", number+1)
	}
	return err
}

// files compares the files of two layers by name.
func (d *difference) files(number int, published, rebuilt []file) {
	got, want := byName(published), byName(rebuilt)
	all := maps.Clone(got)
	maps.Copy(all, want)
	listed := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		its, isThere := got[name]
		ours, isMade := want[name]
		at := fmt.Sprintf("layer %d: file %q", number+1, name)
		before := len(d.found)
		switch {
		case !isMade:
			d.note("%s, %d bytes: the commit does not make it", at, len(its.content))
		case !isThere:
			d.note("%s: missing, but the commit makes it", at)
		default:
			if its.about != ours.about {
				d.note("%s has %s, the commit makes %s", at, its.about, ours.about)
			}
			d.contents(at, its.content, ours.content)
		}
		if listed += len(d.found) - before; listed > listLimit {
			d.note("layer %d: and more", number+1)
			return
		}
	}
}

// byName returns the files by name. It adds a number to a name that was there before.
func byName(files []file) map[string]file {
	all := map[string]file{}
	for _, file := range files {
		name := file.name
		for times := 2; ; times++ {
			if _, twice := all[name]; !twice {
				break
			}
			name = fmt.Sprintf("%s (%d)", file.name, times)
		}
		all[name] = file
	}
	return all
}

// contents compares the contents of a file, and for programs also the build information.
func (d *difference) contents(at string, published, rebuilt []byte) {
	if bytes.Equal(published, rebuilt) {
		return
	}
	first, differing := -1, 0
	for i := range min(len(published), len(rebuilt)) {
		if published[i] != rebuilt[i] {
			differing++
			if first < 0 {
				first = i
			}
		}
	}
	switch {
	case len(published) != len(rebuilt):
		d.note("%s has %d bytes, the commit makes %d", at, len(published), len(rebuilt))
	default:
		d.note("%s differs in %d of %d bytes, the first of them at %d", at, differing, len(published), first)
	}
	got, gotErr := newProgram(published)
	want, wantErr := newProgram(rebuilt)
	if gotErr != nil || wantErr != nil {
		return
	}
	ours := strings.Split(want.info.String(), "\n")
	listed := 0
	for line := range strings.SplitSeq(got.info.String(), "\n") {
		if !slices.Contains(ours, line) && listed < listLimit {
			d.note("%s was built differently: %q", at, line)
			listed++
		}
	}
}
