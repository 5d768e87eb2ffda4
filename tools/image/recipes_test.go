// SPDX-License-Identifier: Apache-2.0

// Tests of the recipes for users and of hack/image.sh, with stand-ins for all that builds.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// standIn stands for hack/build.sh, hack/licenses.sh and devcluster, which copy it to
// the path in their last argument, and for bin/image, which prints its arguments. It writes
// into the archive of what it was made; its comparison prints that.
const standIn = `#!/usr/bin/env bash
set -o errexit -o nounset
if [[ "$0" == hack/* ]]; then
  mkdir -p "$(dirname "${!#}")"
  cp "$0" "${!#}"
  exit
fi
printf '%s\n' "$@" >&2
case "$1" in
-claims) echo "${CLAIMS:-}" ;;
-compare=*) cat made ;;
-release=*)
  commit=$(git log -1 --format='%H (%D)' 2>/dev/null || true)
  cd "${3#-folder=}"
  echo "made of ${commit}, GOFIPS140=${GOFIPS140}:" linux_* >made
  tar -cf sample-controller.tar made
  ;;
esac
`

// tree is a folder that has nothing but the recipes and their scripts.
type tree struct {
	*testing.T
	folder string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	c := &tree{T: t, folder: t.TempDir()}
	for path, isReal := range map[string]bool{
		"Makefile": true, "go.mod": true, "tools/image/targets.mk": true, "hack/image.sh": true, "hack/install-yaml.sh": true,
		"hack/build.sh": false, "hack/licenses.sh": false, "bin/devcluster": false,
	} {
		text := []byte(standIn)
		if isReal {
			var err error
			text, err = os.ReadFile(filepath.Join("..", "..", path))
			must(t, err)
		}
		must(t, os.MkdirAll(filepath.Join(c.folder, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(c.folder, path), text, 0o755))
	}
	return c
}

// run runs a script in the tree, without the variables of the make that runs this test.
func (c *tree) run(script string, arguments ...string) (stdout, stderr string, err error) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "bash", append([]string{"-o", "errexit", "-c", script, "bash"}, arguments...)...)
	cmd.Dir = c.folder
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !regexp.MustCompile(`^(GIT_.*|IMAGE.*|MAKE.*|MFLAGS)$`).MatchString(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// TestTheNameOfAnImageIsNoCode passes names that a branch or a tag can have.
func TestTheNameOfAnImageIsNoCode(t *testing.T) {
	c := newTree(t)
	for _, name := range []string{
		`x:"; touch ran; "`, "x:'; touch ran; '", "x:`touch ran`$(touch ran)", "x:$$(touch ran)$(shell touch ran)",
	} {
		for script, calls := range map[string]int{
			`make --keep-going $TARGETS IMAGE="$1"`:                   3, // install-yaml refuses such a name
			`IMAGE="$1" make --keep-going $TARGETS`:                   3,
			`make --keep-going $TARGETS IMAGE=x IMAGE_PLATFORMS="$1"`: 0, // and all that builds, such a platform
		} {
			_, printed, err := c.run(`TARGETS="image push-image verify-image install-yaml"; `+script, name)
			if _, missing := os.Stat(filepath.Join(c.folder, "ran")); missing == nil {
				t.Fatalf("%s runs %s", script, name)
			}
			if err == nil || strings.Count(printed, "-image="+name+"\n") != calls {
				t.Errorf("%s with %s: %v\n%s", script, name, err, printed)
			}
		}
	}
}

func TestPlatforms(t *testing.T) {
	c := newTree(t)
	for script, want := range map[string][]string{
		"make push-image IMAGE=x:1":                             {"linux_amd64", "linux_arm64"},
		"make push-image IMAGE=x:1 IMAGE_PLATFORMS=linux/s390x": {"linux_s390x"},
		"make image": {"linux_" + runtime.GOARCH},
	} {
		_, printed, err := c.run(script)
		must(t, err)
		var platforms []string
		for line := range strings.Lines(printed) {
			if folder, ok := strings.CutSuffix(line, "/sample-controller\n"); ok {
				platforms = append(platforms, filepath.Base(folder))
			}
		}
		if !slices.Equal(platforms, want) {
			t.Errorf("%s makes programs for %v, not %v", script, platforms, want)
		}
	}
}

// TestVerify verifies an image that claims the first of two commits. Each has a tag.
func TestVerify(t *testing.T) {
	c := newTree(t)
	printed, stderr, err := c.run(`git init --quiet && echo /bin >.git/info/exclude && git add --all &&
git commit --quiet --message=first && git tag v1.2.3 &&
git commit --quiet --allow-empty --message=second && git tag v1.2.4 && git rm --quiet go.mod && git rev-parse HEAD^`)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	first, release := strings.TrimSpace(printed), runtime.Version()
	for name, row := range map[string]struct {
		claims string // commit, Go release, GOFIPS140, platforms and version
		want   string // in the output, or in the error
		fails  bool
	}{
		"a tag": {
			claims: first + " " + release + " off linux/amd64,linux/arm64 v1.2.3",
			want:   "made of " + first + " (HEAD, tag: v1.2.3), GOFIPS140=off: linux_amd64 linux_arm64\n",
		},
		"before the tag was set": {
			claims: first + " " + release + " v1.0.0 linux/s390x v0.0.0-20260504030201-" + first[:12],
			want:   "made of " + first + " (HEAD), GOFIPS140=v1.0.0: linux_s390x\n",
		},
		"no version": {
			claims: first + " " + release + " off linux/s390x",
			want:   "made of " + first,
		},
		"an unknown commit": {
			claims: commit + " " + release + " off linux/s390x",
			want:   "this clone has no commit " + commit + ": run git fetch", fails: true,
		},
		"an unknown tag": {
			claims: first + " " + release + " off linux/s390x v9.9.9",
			want:   "this clone has no tag v9.9.9: run git fetch --tags", fails: true,
		},
		"the tag of another commit": {
			claims: first + " " + release + " off linux/s390x v1.2.4",
			want:   "version v1.2.4 and commit " + first + ", but the tag v1.2.4 of this clone is at ", fails: true,
		},
		"another Go release": {
			claims: first + " go1.2.3 off linux/s390x v1.2.3",
			want:   "built with go1.2.3, but this is " + release, fails: true,
		},
		"a build that fails": {
			claims: first + " " + release + " off windows/amd64 v1.2.3",
			want:   "commit " + first + " cannot be built", fails: true,
		},
	} {
		stdout, stderr, err := c.run(`CLAIMS="$1" hack/image.sh -verify NAME@DIGEST`, row.claims)
		isCompared := strings.Contains(stderr, "-compare=")
		if (err != nil) != row.fails || isCompared == row.fails || !strings.Contains(stdout+stderr, row.want) {
			t.Errorf("%s: %v, want %q, got\n%s%s", name, err, row.want, stdout, stderr)
		}
	}
	printed, _, err = c.run("git tag; git status --short; git worktree list")
	must(t, err)
	if !strings.HasPrefix(printed, "v1.2.3\nv1.2.4\nD  go.mod\n") || strings.Count(printed, "\n") != 4 {
		t.Errorf("the user's own clone has now\n%s", printed)
	}
}
