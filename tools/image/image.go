// SPDX-License-Identifier: Apache-2.0

// The image for each platform: config, annotations and the only layer, with its files. The
// program and its build information.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

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

// platformImage is the image for one platform, and its program.
type platformImage struct {
	v1.Image
	program *program
}

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
	if p.revision() != "" {
		all[labelPrefix+"revision"] = p.revision()
	}
	if committed := p.committed(); !committed.IsZero() {
		all[labelPrefix+"created"] = committed.Format(time.RFC3339)
	}
	return all
}

// timestamp returns the time for all timestamps in the image: the commit's time or, without a
// commit, the earliest time that every reader accepts.
func timestamp(p *program) time.Time {
	if committed := p.committed(); !committed.IsZero() {
		return committed
	}
	return time.Unix(0, 0).UTC()
}

// newPlatformImage makes an image with the program and its license texts. The image has no CA
// certificates, because the API server's CA comes with the service account or the kubeconfig,
// and no users, shell or temporary directory.
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
		History: v1.History{Created: created, CreatedBy: "COPY " + programName + " " + licensesDir + " /", Comment: "the program, and the license texts of what it links"},
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

// writeTar writes an archive of the files. It sets owner, mode and times, so that they do not
// depend on a file system.
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

// combine returns an index, from which a runtime chooses the image for its platform.
func combine(images []*platformImage) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image.Image,
			Descriptor: v1.Descriptor{Platform: &image.program.platform},
		})
	}
	return mutate.Annotations(index, labels(images[0].program)).(v1.ImageIndex)
}

// program is an executable file and its build information.
type program struct {
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

// readProgram reads the file at path, and the license texts beside it.
func readProgram(path string) (*program, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := newProgram(content)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", path, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	if p.licenses, err = readFiles(os.DirFS(filepath.Dir(path)), licensesDir); err != nil {
		return nil, fmt.Errorf("reading the license texts of %s: %w", path, err)
	}
	return p, nil
}

// readFiles reads the files in a directory, sorted by path.
func readFiles(from fs.FS, dir string) ([]namedFile, error) {
	var files []namedFile
	err := fs.WalkDir(from, dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, path)
		files = append(files, namedFile{path, content})
		return err
	})
	return files, err
}

// newProgram reads the build information that the go command wrote into an executable file.
func newProgram(content []byte) (*program, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	p := &program{content: content, info: info}
	p.platform = v1.Platform{OS: p.setting("GOOS"), Architecture: p.setting("GOARCH")}
	return p, nil
}

// check returns an error if the program needs more than a Linux kernel, because the image
// contains nothing else. The caller puts the file before the error's text.
func (p *program) check() error {
	if p.platform.OS != "linux" {
		return fmt.Errorf("is built for %s: build it with GOOS=linux", p.platform)
	}
	if p.setting("CGO_ENABLED") != "0" {
		return errors.New("may need a C library, which the image does not have: build it with CGO_ENABLED=0")
	}
	return nil
}

// setting returns a build setting of the go command, or "" if it is not recorded.
func (p *program) setting(key string) string {
	for _, setting := range p.info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// revision returns the commit, or "" if the build did not know it.
func (p *program) revision() string {
	return p.setting("vcs.revision")
}

// modified reports whether the tree had uncommitted changes, which the version also
// shows.
func (p *program) modified() bool {
	return p.setting("vcs.modified") == "true"
}

// version returns the module's version, or "" if the build did not know it.
func (p *program) version() string {
	if p.info.Main.Version == "(devel)" {
		return ""
	}
	return p.info.Main.Version
}

// committed returns the time of the commit, or zero if the build did not know it. The image
// contains no time of the build, which would make each build different.
func (p *program) committed() time.Time {
	committed, err := time.Parse(time.RFC3339, p.setting("vcs.time"))
	if err != nil {
		return time.Time{}
	}
	return committed.UTC()
}
