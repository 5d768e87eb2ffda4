// SPDX-License-Identifier: Apache-2.0

// Package test makes images as a user does, from clones of this tree, and checks the
// results. The other tests of the module test its functions.
package test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// commitTime is the time of the commits in the clones.
const commitTime = "2026-05-04T03:02:01Z"

func TestImage(t *testing.T) {
	first := newClone(t)
	commit := strings.TrimSpace(first.bash("git rev-parse HEAD"))
	printed := first.bash("make image")
	image := first.image()
	digest, err := image.Digest()
	must(t, err)
	if !strings.Contains(printed, "sample-controller:latest@"+digest.String()) {
		t.Errorf("make image prints %q, want the digest %s", printed, digest)
	}

	t.Run("same image from another clone and environment", func(t *testing.T) {
		second := first.clone("another clone & more")
		second.bash(`umask 077; export GOFLAGS=-tags=other GOAMD64=v3 TZ=Asia/Kolkata GOENV="$1"; unset LANG; go env -w GOEXPERIMENT=fieldtrack; make image`, filepath.Join(t.TempDir(), "env"))
		for _, path := range []string{archiveFile, "_output/image/" + documentFile()} {
			if !bytes.Equal(first.read(path), second.read(path)) {
				t.Errorf("%s differs", path)
			}
		}
		again, err := second.image().Digest()
		must(t, err)
		if again != digest {
			t.Errorf("the digest is %s, then %s", digest, again)
		}
	})
	t.Run("contains the program and its licenses", func(t *testing.T) {
		wantProgramAndLicenses(t, first, image)
	})
	t.Run("config", func(t *testing.T) {
		wantConfig(t, image, commit)
	})
	t.Run("the program runs alone", func(t *testing.T) {
		version := runInImage(t, files(t, image)[0].content, "-version")
		for _, part := range []string{versionOf(t, commit) + "\n", commit + "\n", commitTime, runtime.Version()} {
			if !strings.Contains(version, part) {
				t.Errorf("-version does not print %q:\n%s", part, version)
			}
		}
	})
	t.Run("the Dockerfile makes the same image", func(t *testing.T) {
		lines := first.dockerfile()
		wantSameByDocker(t, lines, image)
		wantBuiltByScript(t, first, lines)
		wantWholeContext(t, first)
	})
	t.Run("bill of materials", func(t *testing.T) {
		wantDocument(t, first)
	})
}

// documentFile returns the name of the image's bill of materials.
func documentFile() string {
	return "sample-controller_linux_" + runtime.GOARCH + ".cdx.json"
}

// wantProgramAndLicenses fails the test unless the image's files are the program, and the
// license texts of this project, of Go, and of each module that the go command lists for the
// program.
func wantProgramAndLicenses(t *testing.T, c *clone, image v1.Image) {
	t.Helper()
	all := files(t, image)
	for i, file := range all {
		mode, isText := int64(0o644), strings.HasPrefix(file.Name, "licenses/") && len(file.content) > 0
		if i == 0 {
			mode, isText = 0o755, "/"+file.Name == programFile
		}
		if !isText || file.Mode != mode || file.Uid != 0 || file.Gid != 0 || file.Uname != "" {
			t.Errorf("%s: mode %o, owner %d:%d %q, %d bytes", file.Name, file.Mode, file.Uid, file.Gid, file.Uname, len(file.content))
		}
		if modified := file.ModTime.UTC().Format(time.RFC3339); modified != commitTime {
			t.Errorf("the time of %s is %s, want the commit's", file.Name, modified)
		}
	}
	for _, part := range append(c.modules(), strings.TrimSpace(c.bash("go list -m")), "go@"+runtime.Version()) {
		if !slices.ContainsFunc(all, func(file file) bool { return strings.HasPrefix(file.Name, "licenses/"+part+"/LICENSE") }) {
			t.Errorf("the image has no license text of %s", part)
		}
	}
}

// modules returns what the go command lists for the program, as MODULE@VERSION.
func (c *clone) modules() []string {
	c.Helper()
	listed := c.bash(`go version -m "_output/image/linux_$1/sample-controller"`, runtime.GOARCH)
	var all []string
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); fields[0] == "dep" {
			all = append(all, fields[1]+"@"+fields[2])
		}
	}
	if len(all) < 10 {
		c.Errorf("only %d modules in the program: %s", len(all), listed)
	}
	return all
}

// wantConfig checks the image's platform, user, entry point and labels.
func wantConfig(t *testing.T, image v1.Image, commit string) {
	t.Helper()
	config, err := image.ConfigFile()
	must(t, err)
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the platform is %s/%s", config.OS, config.Architecture)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("the user is %q", config.Config.User)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{programFile}) || len(config.Config.Cmd) > 0 || len(config.Config.Env) > 0 {
		t.Errorf("the entry point is %q, with %q in %q", config.Config.Entrypoint, config.Config.Cmd, config.Config.Env)
	}
	if created := config.Created.Format(time.RFC3339); created != commitTime {
		t.Errorf("it was created at %s, want the commit's time", created)
	}
	for key, want := range map[string]string{"revision": commit, "created": commitTime, "version": versionOf(t, commit)} {
		if got := config.Config.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("the label %s is %q, want %q", key, got, want)
		}
	}
}

// versionOf returns Go's pseudo-version of a commit without a tag. Its major version is
// that of the module's path.
func versionOf(t *testing.T, commit string) string {
	t.Helper()
	mod, err := os.ReadFile("../../../go.mod")
	must(t, err)
	major := "v0"
	if match := regexp.MustCompile(`(?m)^module .*/(v[0-9]+)$`).FindSubmatch(mod); match != nil {
		major = string(match[1])
	}
	at, err := time.Parse(time.RFC3339, commitTime)
	must(t, err)
	return major + ".0.0-" + at.Format("20060102150405") + "-" + commit[:12]
}

// wantDocument fails the test unless the bill of materials lists every module that the go
// command lists for the program.
func wantDocument(t *testing.T, c *clone) {
	t.Helper()
	var bom cyclonedx.BOM
	must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(c.read("_output/image/"+documentFile())), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	var found []string
	for _, component := range *bom.Components {
		found = append(found, component.Name+"@"+component.Version)
	}
	for _, module := range c.modules() {
		if !slices.Contains(found, module) {
			t.Errorf("%s is not listed", module)
		}
	}
}

// runInImage runs the program in a root folder that contains nothing else, as the image's
// user if this test has the permission, and returns its output.
func runInImage(t *testing.T, program []byte, arguments ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	root := filepath.Join(t.TempDir(), "root")
	must(t, os.Mkdir(root, 0o755))
	must(t, os.WriteFile(filepath.Join(root, programFile), program, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, programFile, arguments...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	output, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Logf("only root may change the root folder, so the program runs in the normal one (%v)", err)
		output, err = exec.CommandContext(ctx, filepath.Join(root, programFile), arguments...).CombinedOutput()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

// archiveFile is relative to a clone, programFile to the image's root.
const (
	archiveFile = "_output/image/sample-controller.tar"
	programFile = "/sample-controller"
)

// clone is a folder with the sources and a git repository.
type clone struct {
	*testing.T
	folder string
}

// newClone copies this tree, with uncommitted changes, to a new folder, and commits
// everything in a new repository.
func newClone(t *testing.T) *clone {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	must(t, err)
	c := &clone{T: t, folder: filepath.Join(t.TempDir(), "clone")}
	must(t, os.Mkdir(c.folder, 0o755))
	entries, err := os.ReadDir(root)
	must(t, err)
	for _, entry := range entries {
		from, to := filepath.Join(root, entry.Name()), filepath.Join(c.folder, entry.Name())
		switch {
		case slices.Contains([]string{".git", "bin", "_output"}, entry.Name()):
		case entry.IsDir():
			must(t, os.CopyFS(to, os.DirFS(from)))
		case entry.Type().IsRegular():
			must(t, exec.Command("cp", from, to).Run())
		}
	}
	c.bash("git init --quiet && git add --all && git commit --quiet --message=first")
	return c
}

// clone makes another clone of the commit, at the path name.
func (c *clone) clone(name string) *clone {
	c.Helper()
	other := &clone{T: c.T, folder: filepath.Join(c.TempDir(), name)}
	c.bash(`git clone --quiet . "$1"`, other.folder)
	return other
}

// bash runs a script in the clone, and returns what it printed.
func (c *clone) bash(script string, arguments ...string) string {
	c.Helper()
	stdout, stderr, err := c.try(script, arguments...)
	if err != nil {
		c.Fatalf("%s: %v\n%s%s", script, err, stdout, stderr)
	}
	return stdout
}

// try runs a script that may fail. It removes the variables of the make that runs this
// test, and the user's settings of git and Docker.
func (c *clone) try(script string, arguments ...string) (stdout, stderr string, err error) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "bash", append([]string{"-o", "errexit", "-c", script, "bash"}, arguments...)...)
	cmd.Dir = c.folder
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "IMAGE") && !strings.HasPrefix(name, "MAKE") && name != "MFLAGS" && name != "DOCKER_CONFIG" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "DOCKER_CONFIG=/nonexistent",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE=2026-05-04T03:02:01Z",
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_DATE=2026-05-04T05:02:01+02:00")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

func (c *clone) read(path string) []byte {
	c.Helper()
	content, err := os.ReadFile(filepath.Join(c.folder, path))
	must(c.T, err)
	return content
}

// image reads the image that make has made, as an OCI layout.
func (c *clone) image() v1.Image {
	c.Helper()
	folder := c.TempDir()
	c.bash(`tar -xf "$1" -C "$2"`, archiveFile, folder)
	index, err := layout.ImageIndexFromPath(folder)
	must(c.T, err)
	manifest, err := index.IndexManifest()
	must(c.T, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	must(c.T, err)
	return image
}

// file is a file in a layer.
type file struct {
	tar.Header
	content []byte
}

// files returns the files of the image's only layer.
func files(t *testing.T, image v1.Image) []file {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	if len(layers) != 1 {
		t.Fatalf("%d layers", len(layers))
	}
	unpacked, err := layers[0].Uncompressed()
	must(t, err)
	defer unpacked.Close()
	var all []file
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		all = append(all, file{*header, content})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
