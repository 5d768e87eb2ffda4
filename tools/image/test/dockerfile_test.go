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

// A test that the Dockerfile and make image build the same image.

package test

import (
	"encoding/json"
	"go/version"
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

// stage is what the Dockerfile does from one FROM to the next.
type stage struct {
	base         string
	instructions []instruction
}

// stages reads the Dockerfile, as far as it goes: this one has no heredocs, ONBUILD or variables outside RUN.
func (c *clone) stages() []stage {
	c.Helper()
	var stages []stage
	whole := ""
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
			stages = append(stages, stage{base: words[0]})
		case len(stages) == 0:
			c.Fatalf("the Dockerfile has %s before the first FROM", name)
		default:
			last := &stages[len(stages)-1]
			last.instructions = append(last.instructions, instruction{name, strings.Join(strings.Fields(rest), " ")})
		}
	}
	return stages
}

// label is one of a LABEL instruction.
var label = regexp.MustCompile(`([^ =]+)="([^"]*)"`)

// wantSameByDocker fails unless the Dockerfile's last stage is made as the
// image is: from nothing, of the program, and with the same config but for what
// only the commit tells.
func wantSameByDocker(t *testing.T, stages []stage, image v1.Image) {
	t.Helper()
	last := stages[len(stages)-1]
	if last.base != "scratch" {
		t.Errorf("the Dockerfile's image is made from %s", last.base)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, told := range last.instructions {
		switch told.name {
		case "LABEL":
			for _, match := range label.FindAllStringSubmatch(told.rest, -1) {
				got.Labels[match[1]] = match[2]
			}
		case "USER":
			got.User = told.rest
		case "WORKDIR":
			got.WorkingDir = told.rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(told.rest), &got.Entrypoint); err != nil {
				t.Errorf("the entry point %s is for a shell, which the image does not have: %v", told.rest, err)
			}
		case "COPY":
			if told.rest != "--from=build /out"+programFile+" /" {
				t.Errorf("the Dockerfile copies %s", told.rest)
			}
		default:
			t.Errorf("the image made without the Dockerfile knows nothing of %s", told.name)
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

// wantBuiltByScript fails unless the Dockerfile builds with the script that
// make uses, and with a Go release that go.mod takes.
func wantBuiltByScript(t *testing.T, c *clone, build stage) {
	t.Helper()
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(c.read("go.mod"))
	release, found := strings.CutPrefix(build.base, "golang:")
	if have, want := "go"+release, "go"+string(needed[1]); !found || version.Compare(have, want) < 0 || strings.Count(release, ".") != 2 {
		t.Errorf("the Dockerfile builds with %s: want golang: with a whole version, %s or newer", build.base, needed[1])
	}
	built := slices.ContainsFunc(build.instructions, func(told instruction) bool {
		return told.name == "RUN" && strings.HasSuffix(told.rest, " hack/build.sh -stamp . . /out"+programFile)
	})
	if !built {
		t.Errorf("the Dockerfile builds otherwise than make: %+v", build.instructions)
	}
}

// wantWholeContext fails if .dockerignore keeps back a file that git has. Git
// reads the patterns, each with a slash before it: they begin at the top folder,
// unlike those of a .gitignore.
func wantWholeContext(t *testing.T, c *clone) {
	t.Helper()
	c.bash(`sed -E '/^(#|!|$|\*\*\/)/! s|^/?|/|' .dockerignore >.git/patterns`)
	if kept := c.bash("git ls-files --cached --ignored --exclude-from=.git/patterns"); kept != "" {
		t.Errorf(".dockerignore keeps these back, so that the program would be said to be of a changed tree:\n%s", kept)
	}
	if sent := c.bash("git ls-files --others --directory --exclude-from=.git/patterns"); sent != "" {
		t.Errorf(".dockerignore lets these be sent to Docker:\n%s", sent)
	}
}
