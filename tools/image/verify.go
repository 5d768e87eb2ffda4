// SPDX-License-Identifier: Apache-2.0

// Verifying an image by rebuilding it.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// claims are what an image says about its build. They are not trusted: they only
// determine what to build, and the result must be the same image.
type claims struct {
	revision  string
	version   string // of the module, empty if the build did not know it
	release   string // of Go, such as go1.26.0
	fips140   string // the setting GOFIPS140
	platforms []string
}

// verify builds the commit that an image in a registry names. If the result is another
// image, it returns an error that lists the digests that differ.
func verify(ctx context.Context, out io.Writer, image string) error {
	reference, err := name.NewDigest(image)
	if err != nil {
		return fmt.Errorf("-image=%s: must be NAME@sha256:DIGEST, because a tag can be moved to another image (%w)", image, err)
	}
	published, err := fetch(ctx, reference)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", reference, err)
	}
	claimed, err := claimsOf(published)
	if err != nil {
		return fmt.Errorf("%s %w", reference, err)
	}
	fmt.Fprintf(out, "%s\nnames commit %s, version %s, %s and the platforms %s.\nRebuilding the commit:\n",
		reference, claimed.revision, cmp.Or(claimed.version, "unknown"), claimed.release, strings.Join(claimed.platforms, ", "))
	folder, err := os.MkdirTemp("", "verify-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	rebuilt, err := rebuild(ctx, folder, claimed)
	if err != nil {
		return err
	}
	digest, err := rebuilt.Digest()
	if err != nil {
		return err
	}
	if digest.String() == reference.DigestStr() {
		fmt.Fprintf(out, "Verified: the commit makes %s, too.\n", digest)
		return nil
	}
	differing, err := differences(published, rebuilt)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is not what commit %s makes, which is %s:\n  %s", reference, claimed.revision, digest, strings.Join(differing, "\n  "))
}

// fetch returns an image or an index in a registry.
func fetch(ctx context.Context, reference name.Digest) (described, error) {
	descriptor, err := remote.Get(reference, registryOptions(ctx)...)
	if err != nil {
		return nil, err
	}
	if descriptor.MediaType.IsIndex() {
		return descriptor.ImageIndex()
	}
	return descriptor.Image()
}

var (
	// A SHA-1 or SHA-256, as git writes them.
	wholeRevision = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	plainWord     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	linuxPlatform = regexp.MustCompile(`^linux/[a-z0-9]+$`)
)

// claimsOf returns what an image or an index says about its build: commit and version from
// its labels, the rest from its program, which must name the same commit. The caller puts
// the image before the error's text.
func claimsOf(whole described) (claims, error) {
	images, err := imagesIn(whole)
	if err != nil {
		return claims{}, fmt.Errorf("is unreadable: %w", err)
	}
	if len(images) == 0 {
		return claims{}, errors.New("has no image")
	}
	file, err := images[0].ConfigFile()
	if err != nil {
		return claims{}, fmt.Errorf("has an unreadable config: %w", err)
	}
	c := claims{revision: file.Config.Labels[labelPrefix+"revision"], version: file.Config.Labels[labelPrefix+"version"]}
	switch {
	case c.revision == "":
		return c, errors.New("does not name its commit: it has no label " + labelPrefix + "revision, so it was not built by make image in a git clone")
	case !wholeRevision.MatchString(c.revision):
		return c, fmt.Errorf("has the label %srevision=%q, which is not a commit", labelPrefix, c.revision)
	case c.version != "" && !plainWord.MatchString(c.version):
		return c, fmt.Errorf("has the label %sversion=%q, which is not a version", labelPrefix, c.version)
	case strings.HasSuffix(c.version, "+dirty"):
		return c, fmt.Errorf("is version %s, built from a tree with uncommitted changes: nobody can rebuild it", c.version)
	}
	for _, image := range images {
		if !linuxPlatform.MatchString(image.platform) {
			return c, fmt.Errorf("is for the platform %q, which make image does not support", image.platform)
		}
		c.platforms = append(c.platforms, image.platform)
	}
	content, err := programIn(images[0])
	if err != nil {
		return c, err
	}
	p, err := newProgram(content)
	if err != nil {
		return c, fmt.Errorf("has a %s that the go command did not build: %w", programName, err)
	}
	return c, c.fromProgram(p)
}

// fromProgram reads the claims of an image's program.
func (c *claims) fromProgram(p *program) error {
	c.release, _, _ = strings.Cut(p.info.GoVersion, " ")
	c.fips140 = p.setting("GOFIPS140")
	switch {
	case p.modified():
		return fmt.Errorf("has a program built from a tree with changes that are not in commit %s: nobody can rebuild it", c.revision)
	case p.revision() != c.revision:
		return fmt.Errorf("contradicts itself: its label names commit %s, but its program %q", c.revision, p.revision())
	case !plainWord.MatchString(c.release) || c.fips140 != "" && !plainWord.MatchString(c.fips140):
		return fmt.Errorf("has a program with an invalid Go release %q or GOFIPS140=%q", c.release, c.fips140)
	}
	return nil
}

// pseudoVersion matches the end of a version that the go command derives from a commit.
var pseudoVersion = regexp.MustCompile(`[.-][0-9]{14}-[0-9a-f]{12}$`)

// rebuild makes the claimed image in a folder. It clones the repository of the working
// directory, and uses the scripts of the claimed commit.
func rebuild(ctx context.Context, folder string, claimed claims) (described, error) {
	// The project may be in a subfolder of its repository.
	prefix, err := output(ctx, ".", "git", "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	commit, err := output(ctx, ".", "git", "rev-parse", "--verify", "--quiet", claimed.revision+"^{commit}")
	if err != nil || commit != claimed.revision {
		return nil, fmt.Errorf("this clone has no commit %s: run git fetch, or ask the image's builder where the commit is", claimed.revision)
	}
	if err := checkVersion(ctx, prefix, claimed); err != nil {
		return nil, err
	}
	sources, err := checkOut(ctx, filepath.Join(folder, "clone"), prefix, claimed)
	if err != nil {
		return nil, err
	}
	release, err := output(ctx, sources, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	if release, _, _ = strings.Cut(release, " "); release != claimed.release {
		return nil, fmt.Errorf("the image was built with %s, but this is %s, which builds different programs: repeat with GOTOOLCHAIN=%s in the environment", claimed.release, release, claimed.release)
	}
	build := command(ctx, sources, "hack/image.sh", "rebuilt", strings.Join(claimed.platforms, ","), filepath.Join(folder, "image"))
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	// For scripts that take this setting from the environment.
	build.Env = append(build.Env, "GOFIPS140="+cmp.Or(claimed.fips140, "off"))
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building commit %s: %w", claimed.revision, err)
	}
	return readArchive(ctx, filepath.Join(folder, "image", programName+".tar"), filepath.Join(folder, "layout"))
}

// checkVersion returns an error if the claimed version is not a tag at the claimed
// commit, because the go command writes the tag into the program.
func checkVersion(ctx context.Context, prefix string, claimed claims) error {
	if claimed.version == "" || pseudoVersion.MatchString(claimed.version) {
		return nil
	}
	tag := prefix + claimed.version
	tagged, err := output(ctx, ".", "git", "rev-parse", "--verify", "--quiet", "refs/tags/"+tag+"^{commit}")
	switch {
	case err != nil:
		return fmt.Errorf("the image names version %s, but this clone has no tag %s: run git fetch --tags", claimed.version, tag)
	case tagged != claimed.revision:
		return fmt.Errorf("the image names version %s and commit %s, but the tag %s of this clone is at %s", claimed.version, claimed.revision, tag, tagged)
	}
	return nil
}

// checkOut clones the repository at the claimed commit, with the tags that the image's
// builder saw at that commit, and returns the project's folder.
func checkOut(ctx context.Context, clone, prefix string, claimed claims) (string, error) {
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	for _, arguments := range [][]string{
		{"clone", "--quiet", "--shared", "--no-checkout", root, clone},
		{"-C", clone, "checkout", "--quiet", "--detach", claimed.revision},
	} {
		if _, err := output(ctx, ".", "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"}, arguments...)...); err != nil {
			return "", err
		}
	}
	// An image may have been built before its commit got a tag.
	if pseudoVersion.MatchString(claimed.version) {
		tags, err := output(ctx, clone, "git", "tag", "--points-at", "HEAD")
		if err != nil {
			return "", err
		}
		if names := strings.Fields(tags); len(names) > 0 {
			if _, err := output(ctx, clone, "git", append([]string{"tag", "--delete"}, names...)...); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join(clone, prefix), nil
}

// command returns a command in a folder. It removes the variables that git and make set
// for their children, because the command works on another repository. Cancelling the
// command also stops the processes that it started.
func command(ctx context.Context, folder, program string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, arguments...)
	if strings.Contains(program, "/") {
		cmd.Path = filepath.Join(folder, program)
	}
	cmd.Dir = folder
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_CONFIG") || strings.HasPrefix(name, "MAKE") || name == "MFLAGS" {
			continue
		}
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// output runs a program, and returns what it prints, without the newline at the end.
func output(ctx context.Context, folder, program string, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := command(ctx, folder, program, arguments...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(arguments, " "), err, stderr.String())
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}

// readArchive unpacks an archive into a folder, and reads the image or the index.
func readArchive(ctx context.Context, archive, folder string) (described, error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(ctx, folder, "tar", "-xf", archive); err != nil {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, not one", archive, len(manifest.Manifests))
	}
	about := manifest.Manifests[0]
	if about.MediaType.IsIndex() {
		return index.ImageIndex(about.Digest)
	}
	return index.Image(about.Digest)
}
