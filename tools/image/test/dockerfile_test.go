// SPDX-License-Identifier: Apache-2.0

// A test that the Dockerfile and make image build the same image.

package test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// label matches a label in a LABEL instruction.
var label = regexp.MustCompile(`([^ =]+)="([^"]*)"`)

// dockerfile returns the instructions of the Dockerfile, one per line, without comments
// and unnecessary blanks. It does not support heredocs.
func (c *clone) dockerfile() []string {
	c.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(c.read("Dockerfile")), "")
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantSameByDocker fails the test unless the Dockerfile's last stage is like the image:
// from scratch, with what the script builds, and with the same config except for the labels
// that depend on the commit.
func wantSameByDocker(t *testing.T, lines []string, image v1.Image) {
	t.Helper()
	from := slices.Index(lines, "FROM scratch")
	if from < 0 {
		t.Fatalf("no stage of the Dockerfile is from scratch: %q", lines)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, line := range lines[from+1:] {
		switch name, rest, _ := strings.Cut(line, " "); {
		case name == "LABEL":
			for _, match := range label.FindAllStringSubmatch(rest, -1) {
				got.Labels[match[1]] = match[2]
			}
		case name == "USER":
			got.User = rest
		case name == "WORKDIR":
			got.WorkingDir = rest
		case name == "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &got.Entrypoint); err != nil {
				t.Errorf("the entry point %s needs a shell, which the image lacks: %v", rest, err)
			}
		case line != "COPY --from=build /out /":
			t.Errorf("the Dockerfile has %s, which make image does not support", line)
		}
	}
	file, err := image.ConfigFile()
	must(t, err)
	want := file.Config
	for _, ofCommit := range []string{"version", "revision", "created"} {
		delete(want.Labels, "org.opencontainers.image."+ofCommit)
	}
	if got.User != want.User || got.WorkingDir != want.WorkingDir || !slices.Equal(got.Entrypoint, want.Entrypoint) || !maps.Equal(got.Labels, want.Labels) {
		t.Errorf("the Dockerfile's image has\n%+v\nthat of make image\n%+v", got, want)
	}
}

// wantBuiltByScript fails the test unless the Dockerfile builds with the same scripts as
// make, and with the Go release of go.mod's toolchain line.
func wantBuiltByScript(t *testing.T, c *clone, lines []string) {
	t.Helper()
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(c.read("go.mod"))
	if len(release) != 2 || !slices.Contains(lines, "ARG GO_IMAGE=golang:"+string(release[1])) ||
		!slices.Contains(lines, "FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build") {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s: %q", release, lines)
	}
	built := slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "RUN ") && strings.HasSuffix(line, " hack/build.sh -stamp . . /out"+programFile+" && hack/licenses.sh . /out/licenses")
	})
	if !built {
		t.Errorf("the Dockerfile builds differently from make: %q", lines)
	}
}

// wantWholeContext fails the test if .dockerignore excludes a file that git has. Git
// evaluates the patterns, with a slash before each, because they are relative to the top
// folder, unlike those of a .gitignore.
func wantWholeContext(t *testing.T, c *clone) {
	t.Helper()
	c.bash(`sed -E '/^(#|!|$|\*\*\/)/! s|^/?|/|' .dockerignore >.git/patterns`)
	if kept := c.bash("git ls-files --cached --ignored --exclude-from=.git/patterns"); kept != "" {
		t.Errorf(".dockerignore excludes these files, so that the program's version would end with +dirty:\n%s", kept)
	}
	if sent := c.bash("git ls-files --others --directory --exclude-from=.git/patterns"); sent != "" {
		t.Errorf(".dockerignore does not exclude these files, which git does not have:\n%s", sent)
	}
}
