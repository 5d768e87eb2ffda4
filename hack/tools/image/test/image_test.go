// SPDX-License-Identifier: Apache-2.0

// Package test calls the recipes: as a user does, in clones of this tree, and with stand-ins for the
// programs that build. The module's other tests cover its functions.
package test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

const root = "../../../.."

// TestImage pushes an image, and verifies it from another path and environment, which must not change
// its bytes. Other tests check that other images are rejected, and what is not pushed.
func TestImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/controller"
	c := newClone(t)
	// The Go release of the test may be older than an image requires.
	c.bash(`GOTOOLCHAIN=local go mod edit -toolchain=none && git commit --quiet --all --message="any release"`)
	commit := strings.TrimSpace(c.bash("git rev-parse HEAD"))
	printed := c.bash(`make push-image IMAGE="$1:v1" IMAGE_PLATFORMS="linux/$(go env GOHOSTARCH)"`, repository)
	_, digest, _ := strings.Cut(printed, "@")
	digest, _, _ = strings.Cut(digest, " ")
	// The clone is at another commit now; the image's commit is verified.
	c.bash("git tag v1.9.9 && git commit --quiet --allow-empty --message=second && touch new && git rm --quiet main.go")
	printed = c.bash(`umask 077; export GOFLAGS=-tags=other GOAMD64=v3 TZ=Asia/Kolkata GOENV="$2"; unset LANG; go env -w GOEXPERIMENT=fieldtrack
make verify-image IMAGE="$1"`, repository+":v1@"+digest, filepath.Join(t.TempDir(), "env"))
	if !strings.Contains(printed, "names commit "+commit) || !strings.Contains(printed, "Verified: the commit builds the same image, "+digest) {
		t.Errorf("make verify-image prints\n%s", printed)
	}

	t.Run("the license texts of this project, of Go, and of each module", func(t *testing.T) {
		files := c.bash(`cd "_output/image/linux_$1"; tar -xOf sample-controller.tar "$(tar -tf sample-controller.tar | grep gz$)" | tar -tz`, runtime.GOARCH)
		parts := strings.Fields(c.bash(`go list -m; echo "go@$1"; go version -m "_output/image/linux_$2/sample-controller" |
  awk '$1 == "dep" { print $2 "@" $3 }'`, runtime.Version(), runtime.GOARCH))
		if len(parts) < 12 {
			t.Errorf("only %d modules in the program: %s", len(parts), parts)
		}
		for _, part := range parts {
			if !strings.Contains("\n"+files, "\nlicenses/"+part+"/LICENSE") {
				t.Errorf("the image has no license text of %s", part)
			}
		}
	})
}

// TestDockersContextHasWhatGitHas evaluates the patterns with git, with a slash before each, because
// they are relative to the top directory, unlike the patterns in a .gitignore.
func TestDockersContextHasWhatGitHas(t *testing.T) {
	c := newClone(t)
	c.bash(`sed -E '/^(#|!|$|\*\*\/)/! s|^/?|/|' .dockerignore >.git/patterns && mkdir bin _output && touch bin/a _output/a sample-controller`)
	if kept := c.bash("git ls-files --cached --ignored --exclude-from=.git/patterns"); kept != "" {
		t.Errorf(".dockerignore excludes these files, so that the program's version would end with +dirty:\n%s", kept)
	}
	if sent := c.bash("git ls-files --others --directory --exclude-from=.git/patterns"); sent != "" {
		t.Errorf(".dockerignore does not exclude these files, which git does not have:\n%s", sent)
	}
}

// TestBuild builds the program from a clone, and from sources that are not a clean clone.
// The build must succeed, and must not take the commit of another repository.
func TestBuild(t *testing.T) {
	first := newClone(t)
	commit := strings.TrimSpace(first.bash("git rev-parse HEAD"))
	unknownCommit := []string{" (devel)\n"}
	for name, row := range map[string]struct {
		prepare string
		want    []string
	}{
		"a clone":                         {"true", []string{".0.0-20260504030201-" + commit[:12] + "\n", "vcs.revision=" + commit + "\n", "vcs.time=" + commitTime, runtime.Version()}},
		"a changed tree":                  {"touch new", []string{"+dirty\n", "vcs.modified=true\n"}},
		"sources without .git":            {"rm -rf .git", unknownCommit},
		"sources in another's repository": {"rm -rf .git && cd .. && git init --quiet && git commit --quiet --allow-empty --message=other", unknownCommit},
		"a repository without a commit":   {"rm -rf .git && git init -q && git add --all", unknownCommit},
		"a clone that belongs to another": {"chown -R 65532 .", unknownCommit},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(row.prepare, "chown") && os.Geteuid() != 0 {
				t.Skip("only root can give a clone away")
			}
			c := clone(&dir{t, first.path}, "source")
			c.bash(row.prepare)
			version := c.bash("hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
			for _, part := range row.want {
				if !strings.Contains(version, part) {
					t.Errorf("-version does not print %q:\n%s", part, version)
				}
			}
		})
	}
}

// newClone copies this tree, with uncommitted changes, to a new directory, and commits
// everything in a new repository.
func newClone(t *testing.T) *dir {
	t.Helper()
	tree, err := filepath.Abs(root)
	must(t, err)
	c := &dir{t, t.TempDir()}
	c.bash(`for path in "$1"/* "$1"/.[!.]*; do
  case "${path##*/}" in .git | bin | _output) ;; *) cp -R "${path}" . ;; esac
done
git init --quiet; git add --all; git commit --quiet --message=first`, tree)
	return c
}

// clone makes another clone of the commit, at the path name.
func clone(c *dir, name string) *dir {
	c.Helper()
	other := &dir{c.T, filepath.Join(c.TempDir(), name)}
	c.bash(`git clone --quiet . "$1"`, other.path)
	return other
}
