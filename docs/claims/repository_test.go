// SPDX-License-Identifier: Apache-2.0

// Tests of what surrounds the code: the workflow, the updates of dependencies, the container, the form for
// mistakes.

package claims

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// parse reads a file whose keys are those of a type, and no others.
func parse[T any](t *testing.T, file string) (parsed T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, file)), &parsed); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return parsed
}

// typed matches the commands of a workflow.
var typed = regexp.MustCompile(`(?m)^    - run: (.*)$`)

// TestTheWorkflowTypesWhatTheREADMETypes also reads the READMEs and Makefiles of new projects, which have the same
// workflow.
func TestTheWorkflowTypesWhatTheREADMETypes(t *testing.T) {
	workflow := read(t, ".github/workflows/test.yml")
	if lines := strings.Count(workflow, "\n"); lines > 30 {
		t.Errorf("the workflow has %d lines, want at most 30", lines)
	}
	commands := typed.FindAllStringSubmatch(workflow, -1)
	if len(commands) == 0 || len(commands) != strings.Count(workflow, " run:") {
		t.Fatalf("found the commands %q in\n%s", commands, workflow)
	}
	const template = "tools/newproject/template"
	for readme, makefile := range map[string]string{
		"README.md": "Makefile", template + "/README.md.txt": template + "/Makefile.txt", template + "-of/README.md.txt": template + "/Makefile.txt",
	} {
		for _, command := range commands {
			for target := range strings.FieldsSeq(strings.TrimPrefix(command[1], "make ")) {
				if !regexp.MustCompile(`\bmake ([a-z]+ )*` + target + `\b`).MatchString(read(t, readme)) {
					t.Errorf("the workflow runs %q, and %s does not name make %s", command[1], readme, target)
				}
				if !strings.Contains(read(t, makefile), "\n"+target+": ") {
					t.Errorf("the workflow runs %q, and %s has no target %s", command[1], makefile, target)
				}
			}
		}
	}
}

type dependabot struct {
	Version int
	Updates []struct {
		Ecosystem   string `json:"package-ecosystem"`
		Directory   string
		Directories []string
		Schedule    struct{ Interval string }
		Groups      map[string]struct {
			Patterns []string
			Exclude  []string `json:"exclude-patterns"`
		}
	}
}

func TestEachModuleIsUpdated(t *testing.T) {
	var want []string
	for _, mod := range tracked(t, "*go.mod") {
		want = append(want, path.Join("/", path.Dir(mod)))
	}
	slices.Sort(want)
	if got := parse[dependabot](t, ".github/dependabot.yml").Updates[0].Directories; !slices.Equal(got, want) {
		t.Errorf("dependabot.yml updates %q, and modules are in %q", got, want)
	}
	parse[dependabot](t, "tools/newproject/template/.github/dependabot.yml.txt")
}

// required matches a module and the version that a go.mod requires; v0.0.0 is always replaced.
var required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)(?: // indirect)?$`)

// TestModulesRequireTheSameVersions lets modules share compiled packages: a package is compiled once for each set of
// versions of what it imports. Those that compile nothing of the controller's or the cluster's have versions of their own.
func TestModulesRequireTheSameVersions(t *testing.T) {
	type at struct{ version, file string }
	first := map[string]at{}
	for _, mod := range tracked(t, "*go.mod", ":!hack", ":!test/thirdparty/go.mod") {
		for _, require := range required.FindAllStringSubmatch(read(t, mod), -1) {
			name, found := require[1], at{require[2], mod}
			other, isKnown := first[name]
			switch {
			case found.version == "v0.0.0" || strings.HasPrefix(name, "example.com/"):
			case !isKnown:
				first[name] = found
			case other.version != found.version:
				t.Errorf("%s requires %s %s, and %s requires %s: run go get %s@VERSION and go mod tidy where it is older",
					other.file, name, other.version, mod, found.version, name)
			}
		}
	}
	if len(first) < 50 {
		t.Errorf("found only %d modules", len(first))
	}
}

// TestImagesHaveTheReleaseOfGo compares images with the line toolchain in go.mod. Of ./Dockerfile,
// TestDockerfile of hack/tools/image does so.
func TestImagesHaveTheReleaseOfGo(t *testing.T) {
	release := regexp.MustCompile(`\ntoolchain go(.+)\n`).FindStringSubmatch(read(t, "go.mod"))
	for _, file := range []string{"tools/newproject/template/Dockerfile.txt", ".devcontainer/devcontainer.json"} {
		image := regexp.MustCompile(`\bgolang:([0-9.]+)`).FindStringSubmatch(read(t, file))
		if release == nil || image == nil || image[1] != release[1] {
			t.Errorf("%s has the image %q, and go.mod the release %q", file, image, release)
		}
	}
}

type form struct {
	Name, Description string
	Body              []struct {
		Type, ID    string
		Attributes  struct{ Label, Description, Render string }
		Validations struct{ Required bool }
	}
}

// TestTheFormAsksForCommandsThatExist looks for each in the page of the plugin.
func TestTheFormAsksForCommandsThatExist(t *testing.T) {
	page, asked := read(t, "docs/kubectl-foo.md"), 0
	for _, question := range parse[form](t, ".github/ISSUE_TEMPLATE/bug.yml").Body {
		for _, command := range regexp.MustCompile("kubectl foo ([a-z]+)").FindAllStringSubmatch(question.Attributes.Description, -1) {
			if asked++; !strings.Contains(page, "\n## "+command[1]+"\n") {
				t.Errorf("the form asks for %s, which docs/kubectl-foo.md lacks", command[0])
			}
		}
	}
	parse[form](t, "tools/newproject/template/.github/ISSUE_TEMPLATE/bug.yml.txt")
	if asked == 0 {
		t.Error("the form asks for no output of kubectl foo")
	}
}
