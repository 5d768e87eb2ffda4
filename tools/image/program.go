// SPDX-License-Identifier: Apache-2.0

// A program and the build information in it.

package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// program is an executable file and its build information.
type program struct {
	content  []byte
	info     *debug.BuildInfo
	platform v1.Platform
	licenses []namedFile // the texts that hack/licenses.sh has collected
}

// namedFile is a file of the image.
type namedFile struct {
	path    string // relative to the image's root
	content []byte
}

// licensesFolder is beside the program, and at the top of the image.
const licensesFolder = "licenses"

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
	if p.licenses, err = readLicenses(os.DirFS(filepath.Dir(path))); err != nil {
		return nil, fmt.Errorf("reading the license texts of %s: %w", path, err)
	}
	return p, nil
}

// readLicenses reads the license texts, in the order of their paths.
func readLicenses(from fs.FS) ([]namedFile, error) {
	var texts []namedFile
	err := fs.WalkDir(from, licensesFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, path)
		texts = append(texts, namedFile{path, content})
		return err
	})
	return texts, err
}

// newProgram reads the build information that the go command has written into an
// executable file.
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

// committed returns the time of the commit, or zero if the build did not know it. It is
// the only time in the image, because with the time of the build each build would differ.
func (p *program) committed() time.Time {
	committed, err := time.Parse(time.RFC3339, p.setting("vcs.time"))
	if err != nil {
		return time.Time{}
	}
	return committed.UTC()
}
