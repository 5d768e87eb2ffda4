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

package test

import (
	"bytes"
	"go/version"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// stages reads the Dockerfile, as Docker does.
func (c *clone) stages() []instructions.Stage {
	c.Helper()
	file, err := parser.Parse(bytes.NewReader(c.read("Dockerfile")))
	must(c.T, err)
	for _, warning := range file.Warnings {
		c.Errorf("Dockerfile: %s", warning.Short)
	}
	stages, _, err := instructions.Parse(file.AST, nil)
	must(c.T, err)
	return stages
}

// wantSameByDocker fails unless the Dockerfile's last stage is made as the
// image is: from nothing, of the program, and with the same config but for what
// only the commit tells.
func wantSameByDocker(t *testing.T, stages []instructions.Stage, image v1.Image) {
	t.Helper()
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the Dockerfile's image is made from %s", last.BaseName)
	}
	got := v1.Config{Labels: map[string]string{}}
	for _, command := range last.Commands {
		switch command := command.(type) {
		case *instructions.LabelCommand:
			for _, label := range command.Labels {
				got.Labels[label.Key] = strings.Trim(label.Value, `"`)
			}
		case *instructions.UserCommand:
			got.User = command.User
		case *instructions.WorkdirCommand:
			got.WorkingDir = command.Path
		case *instructions.EntrypointCommand:
			got.Entrypoint = command.CmdLine
		case *instructions.CopyCommand:
			if command.From != "build" || !slices.Equal(command.SourcePaths, []string{"/out" + programFile}) || command.DestPath != "/" {
				t.Errorf("the Dockerfile copies another file: %s", command)
			}
		default:
			t.Errorf("the image made without the Dockerfile knows nothing of %s", command.Name())
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
func wantBuiltByScript(t *testing.T, c *clone, build instructions.Stage) {
	t.Helper()
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(c.read("go.mod"))
	release, found := strings.CutPrefix(build.BaseName, "golang:")
	if have, want := "go"+release, "go"+string(needed[1]); !found || version.Compare(have, want) < 0 || strings.Count(release, ".") != 2 {
		t.Errorf("the Dockerfile builds with %s: want golang: with a whole version, %s or newer", build.BaseName, needed[1])
	}
	for _, command := range build.Commands {
		run, ok := command.(*instructions.RunCommand)
		if !ok {
			continue
		}
		if script := strings.Join(run.CmdLine, " "); !strings.HasSuffix(script, "hack/build.sh -stamp . . /out"+programFile) {
			t.Errorf("the Dockerfile runs %s", script)
		}
		return
	}
	t.Error("the Dockerfile builds nothing")
}

// wantWholeContext fails if .dockerignore keeps back a file that git has.
func wantWholeContext(t *testing.T, c *clone) {
	t.Helper()
	patterns, err := ignorefile.ReadAll(bytes.NewReader(c.read(".dockerignore")))
	must(t, err)
	matcher, err := patternmatcher.New(patterns)
	must(t, err)
	for path := range strings.SplitSeq(strings.Trim(c.bash("git ls-files -z"), "\x00"), "\x00") {
		ignored, err := matcher.MatchesOrParentMatches(path)
		must(t, err)
		if ignored {
			t.Errorf(".dockerignore keeps back %s: the program would be said to be of a changed tree", path)
		}
	}
	for _, path := range []string{"bin/devcluster", "_output/image/sample-controller.tar"} {
		if ignored, err := matcher.MatchesOrParentMatches(path); err != nil || !ignored {
			t.Errorf(".dockerignore lets %s be sent to Docker (%v)", path, err)
		}
	}
}
