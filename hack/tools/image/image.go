// SPDX-License-Identifier: Apache-2.0

// The image: config, annotations and the only layer of each platform, and the index. The programs
// and their build information.

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The config of every image of the controller. The Dockerfile sets the same.
const (
	programName = "sample-controller"
	// An arbitrary user without privileges. It is a number because the image has no /etc/passwd,
	// and because the kubelet can't check a name for runAsNonRoot.
	user        = "65532:65532"
	description = "Kubernetes controller for Foos"
	license     = "Apache-2.0"
)

// labelPrefix is the prefix of the keys that the OCI image specification defines.
const labelPrefix = "org.opencontainers.image."

// The annotations of what else decides the program's bytes, below the module's path.
const (
	releaseKey = "/go-release"
	fips140Key = "/gofips140"
)

// labels returns the image's metadata. The image has it twice: as labels in the config, which a
// container inherits, and as annotations of the manifest, which clients can read without
// fetching the config.
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
	if revision := p.setting("vcs.revision"); revision != "" {
		all[labelPrefix+"revision"] = revision
		all[labelPrefix+"created"] = timestamp(p).Format(time.RFC3339)
	}
	return all
}

// annotations returns the labels, and what else has to be known to build the program again.
func annotations(p *program) map[string]string {
	all := labels(p)
	all[p.info.Main.Path+releaseKey] = p.release()
	all[p.info.Main.Path+fips140Key] = cmp.Or(p.setting("GOFIPS140"), "off")
	return all
}

// timestamp returns the time for all timestamps in the image: the commit's time or, without a
// commit, the earliest time that every reader accepts. A time of the build would make each build
// different.
func timestamp(p *program) time.Time {
	committed, err := time.Parse(time.RFC3339, p.setting("vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return committed.UTC()
}

// newImage makes an image for one platform, with the program and its license texts. The image has no CA
// certificates, because the API server's CA comes with the service account or the kubeconfig,
// and no users, shell or temporary directory.
func newImage(p *program) (v1.Image, error) {
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
		History: v1.History{Created: created, CreatedBy: "COPY " + programName + " " + licensesDir + " /", Comment: "the program, and the license texts of what it links"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, annotations(p)).(v1.Image), nil
}

// layerOf returns a layer with the program and its license texts. It sets owner, mode and times, so
// that they do not depend on a file system.
func layerOf(p *program) (v1.Layer, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	for _, file := range append([]namedFile{{programName, p.content}}, p.licenses...) {
		header := tar.Header{Name: file.path, Size: int64(len(file.content)), Mode: 0o644, ModTime: timestamp(p), Format: tar.FormatUSTAR}
		if file.path == programName {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(&header); err != nil {
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

// newIndex makes an image of each program, and an index, from which a runtime chooses the image for
// its platform. It writes each image to an archive beside its program.
func newIndex(tag name.Tag, programs []*program) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := newImage(p)
		if err == nil {
			err = tarball.WriteToFile(p.archive(), tag, image)
		}
		if err != nil {
			return nil, fmt.Errorf("making an image of %s: %w", p.path, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p.platform}})
	}
	return mutate.Annotations(index, annotations(programs[0])).(v1.ImageIndex), nil
}

// program is an executable file and its build information.
type program struct {
	path     string
	content  []byte
	info     *debug.BuildInfo
	platform v1.Platform
	licenses []namedFile // the texts that hack/licenses.sh has collected
}

// namedFile is a file of an archive.
type namedFile struct {
	path    string // relative to the root
	content []byte
}

// licensesDir is beside the program, and at the top of the image.
const licensesDir = "licenses"

// readProgram reads the file at path, with the build information that the go command wrote into it,
// and the license texts beside it.
func readProgram(path string) (*program, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", path, err)
	}
	p := &program{path: path, content: content, info: info}
	p.platform = v1.Platform{OS: p.setting("GOOS"), Architecture: p.setting("GOARCH")}
	beside := os.DirFS(filepath.Dir(path))
	err = fs.WalkDir(beside, licensesDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(beside, path)
		p.licenses = append(p.licenses, namedFile{path, text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the license texts of %s: %w", path, err)
	}
	return p, nil
}

// archive returns the path of the image's archive, in the format of "docker save".
func (p *program) archive() string { return p.path + ".tar" }

// setting returns a build setting of the go command, or "" if it is not recorded.
func (p *program) setting(key string) string {
	for _, setting := range p.info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// release returns the Go release, without the experiments that may follow it.
func (p *program) release() string {
	release, _, _ := strings.Cut(p.info.GoVersion, " ")
	return release
}

// version returns the module's version, or "" if the build did not know it.
func (p *program) version() string {
	if p.info.Main.Version == "(devel)" {
		return ""
	}
	return p.info.Main.Version
}
