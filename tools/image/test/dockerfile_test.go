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

// instruction is an instruction of the Dockerfile, such as COPY, with its arguments.
type instruction struct {
	name, rest string
}

// stage is the part of the Dockerfile from one FROM to the next.
type stage struct {
	base         string
	instructions []instruction
}

// stages parses the Dockerfile. It does not support heredocs, ONBUILD and variables
// outside RUN, which this Dockerfile does not use, except for GO_IMAGE.
func (c *clone) stages() []stage {
	c.Helper()
	var stages []stage
	whole, goImage := "", ""
	for line := range strings.Lines(string(c.read("Dockerfile"))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		before, goesOn := strings.CutSuffix(line, `\`)
		whole += before
		if goesOn {
			continue
		}
		name, rest, _ := strings.Cut(whole, " ")
		whole = ""
		switch {
		case name == "FROM":
			words := slices.DeleteFunc(strings.Fields(rest), func(word string) bool { return strings.HasPrefix(word, "--") })
			stages = append(stages, stage{base: strings.Replace(words[0], "$GO_IMAGE", goImage, 1)})
		case len(stages) == 0 && strings.HasPrefix(rest, "GO_IMAGE="):
			goImage = strings.TrimPrefix(rest, "GO_IMAGE=")
		case len(stages) == 0:
			c.Fatalf("the Dockerfile has %s before the first FROM", name)
		default:
			last := &stages[len(stages)-1]
			last.instructions = append(last.instructions, instruction{name, strings.Join(strings.Fields(rest), " ")})
		}
	}
	return stages
}

// label matches a label in a LABEL instruction.
var label = regexp.MustCompile(`([^ =]+)="([^"]*)"`)

// wantSameByDocker fails the test unless the Dockerfile's last stage is like the image:
// from scratch, with what the script builds, and with the same config except for the labels
// that depend on the commit.
func wantSameByDocker(t *testing.T, stages []stage, image v1.Image) {
	t.Helper()
	last := stages[len(stages)-1]
	if last.base != "scratch" {
		t.Errorf("the Dockerfile's image is based on %s", last.base)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, found := range last.instructions {
		switch found.name {
		case "LABEL":
			for _, match := range label.FindAllStringSubmatch(found.rest, -1) {
				got.Labels[match[1]] = match[2]
			}
		case "USER":
			got.User = found.rest
		case "WORKDIR":
			got.WorkingDir = found.rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(found.rest), &got.Entrypoint); err != nil {
				t.Errorf("the entry point %s needs a shell, which the image lacks: %v", found.rest, err)
			}
		case "COPY":
			if found.rest != "--from=build /out /" {
				t.Errorf("the Dockerfile copies %s", found.rest)
			}
		default:
			t.Errorf("the Dockerfile has %s, which make image does not support", found.name)
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
func wantBuiltByScript(t *testing.T, c *clone, build stage) {
	t.Helper()
	release := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(c.read("go.mod"))
	if len(release) != 2 || build.base != "golang:"+string(release[1]) {
		t.Errorf("the Dockerfile builds with %s, go.mod with the toolchain %s", build.base, release)
	}
	built := slices.ContainsFunc(build.instructions, func(found instruction) bool {
		return found.name == "RUN" && strings.HasSuffix(found.rest, " hack/build.sh -stamp . . /out"+programFile+" && hack/licenses.sh . /out/licenses")
	})
	if !built {
		t.Errorf("the Dockerfile builds differently from make: %+v", build.instructions)
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
