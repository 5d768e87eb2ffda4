// SPDX-License-Identifier: Apache-2.0

// Tests of the recipes for users and of hack/image.sh, with stand-ins for the programs that build.

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// standIn stands for hack/build.sh, hack/licenses.sh and devcluster, which copy it to
// the path in their last argument, and for bin/image, which prints its arguments. It also
// prints of what it makes an image, whose digest is another one for riscv64.
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
-release=*)
  commit=$(git log -1 --format='%H (%D)' 2>/dev/null || true)
  shift 2
  digest=1
  if [[ "$*" == *riscv64* ]]; then digest=2; fi
  printf 'rebuilt@sha256:%064d\n' "${digest}"
  echo "made of ${commit}, GOFIPS140=${GOFIPS140}:" $(printf '%s\n' "$@" | grep -o 'linux_[a-z0-9]*')
  ;;
esac
`

// newTree makes a directory that has nothing but the recipes and their scripts.
func newTree(t *testing.T) *dir {
	t.Helper()
	c := &dir{t, t.TempDir()}
	for path, isReal := range map[string]bool{
		"Makefile": true, "go.mod": true, "hack/tools/image/targets.mk": true, "hack/image.sh": true, "hack/install-yaml.sh": true, "hack/release.sh": true,
		"hack/build.sh": false, "hack/licenses.sh": false, "bin/devcluster": false,
	} {
		text := []byte(standIn)
		if isReal {
			var err error
			text, err = os.ReadFile(filepath.Join(root, path))
			must(t, err)
		}
		must(t, os.MkdirAll(filepath.Join(c.path, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(c.path, path), text, 0o755))
	}
	return c
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
			_, printed, err := c.try(`TARGETS="image push-image verify-image install-yaml"; `+script, name)
			if _, missing := os.Stat(filepath.Join(c.path, "ran")); missing == nil {
				t.Fatalf("%s runs %s", script, name)
			}
			if err == nil || strings.Count(printed, "-image="+name+"\n") != calls {
				t.Errorf("%s with %s: %v\n%s", script, name, err, printed)
			}
		}
	}
}

// TestArguments shows what the recipes call bin/image with.
func TestArguments(t *testing.T) {
	c := newTree(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	release := regexp.MustCompile(`(?m)^toolchain (\S+)$`).FindSubmatch(mod)
	for script, want := range map[string]struct {
		push      string
		platforms []string
	}{
		"make push-image IMAGE=x:1":                             {"-push", []string{"linux_amd64", "linux_arm64"}},
		"make push-image IMAGE=x:1 IMAGE_PLATFORMS=linux/s390x": {"-push", []string{"linux_s390x"}},
		"FORCE=1 make push-image IMAGE=x:1":                     {"-push", []string{"linux_amd64", "linux_arm64"}},
		"make push-image IMAGE=x:1 FORCE=1":                     {"-push -force", []string{"linux_amd64", "linux_arm64"}},
		"make image":                                            {"", []string{"linux_" + runtime.GOARCH}},
	} {
		_, printed, err := c.try(script)
		must(t, err)
		var flags, platforms []string
		for argument := range strings.FieldsSeq(printed) {
			if dir, ok := strings.CutSuffix(argument, "/sample-controller"); ok {
				platforms = append(platforms, filepath.Base(dir))
			} else if argument == "-push" || argument == "-force" {
				flags = append(flags, argument)
			}
		}
		if !slices.Equal(platforms, want.platforms) || strings.Join(flags, " ") != want.push {
			t.Errorf("%s makes programs for %v, with %v", script, platforms, flags)
		}
		if len(release) != 2 || !strings.Contains(printed, "-release="+string(release[1])+"\n") {
			t.Errorf("%s does not name the release %s of go.mod:\n%s", script, release, printed)
		}
	}
}

// TestVerify verifies an image that claims the first of two commits. Each has a tag.
func TestVerify(t *testing.T) {
	c := newTree(t)
	printed := c.bash(`git init --quiet && echo /bin >.git/info/exclude && git add --all &&
git commit --quiet --message=first && git tag v1.2.3 &&
git commit --quiet --allow-empty --message=second && git tag v1.2.4 && git rm --quiet go.mod && git rev-parse HEAD^`)
	first, release, digest := strings.TrimSpace(printed), runtime.Version(), fmt.Sprintf("%064d", 1)
	unknown := strings.Repeat("0", len(first))
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
		"another image": {
			claims: first + " " + release + " off linux/riscv64 v1.2.3",
			want:   " differs from what its commit builds, sha256:" + digest[:63] + "2: ", fails: true,
		},
		"an unknown commit": {
			claims: unknown + " " + release + " off linux/s390x",
			want:   "this clone has no commit " + unknown + ": run git fetch", fails: true,
		},
		"an unknown tag": {
			claims: first + " " + release + " off linux/s390x v9.9.9",
			want:   "this clone has no tag v9.9.9: run git fetch --tags", fails: true,
		},
		"the tag of another commit": {
			claims: first + " " + release + " off linux/s390x v1.2.4",
			want:   "version v1.2.4 and commit " + first + ", but in this clone the tag v1.2.4 is at ", fails: true,
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
		stdout, stderr, err := c.try(`CLAIMS="$1" hack/image.sh -verify "NAME@sha256:$2"`, row.claims, digest)
		isVerified := strings.HasSuffix(stdout, "\nVerified: the commit builds the same image, sha256:"+digest+".\n")
		if (err != nil) != row.fails || isVerified == row.fails || !strings.Contains(stdout+stderr, row.want) {
			t.Errorf("%s: %v, want %q, got\n%s%s", name, err, row.want, stdout, stderr)
		}
	}
	printed = c.bash("git tag; git status --short; git worktree list")
	if !strings.HasPrefix(printed, "v1.2.3\nv1.2.4\nD  go.mod\n") || strings.Count(printed, "\n") != 4 {
		t.Errorf("the user's own clone has now\n%s", printed)
	}
}
