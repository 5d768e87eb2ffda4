// SPDX-License-Identifier: Apache-2.0

// Tests of the version in a program, for clones in different states.

package test

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const unknownCommit = "not built in a git clone"

// TestBuildWithoutACommit builds the program from sources without a repository of their
// own. The build must succeed, and must not take the commit of another repository.
func TestBuildWithoutACommit(t *testing.T) {
	first := newClone(t)
	for name, row := range map[string]struct {
		prepare string
		asRoot  bool
	}{
		"sources without .git":            {"rm -rf .git", false},
		"sources in another's repository": {"rm -rf .git && cd .. && git init --quiet && git commit --quiet --allow-empty --message=other", false},
		"a repository without a commit":   {"rm -rf .git && git init -q && git add --all", false},
		"a clone that belongs to another": {"chown -R 65532 .", true},
	} {
		t.Run(name, func(t *testing.T) {
			if row.asRoot && os.Geteuid() != 0 {
				t.Skip("only root can give a clone away")
			}
			c := (&clone{T: t, folder: first.folder}).clone("source")
			c.bash(row.prepare)
			version := c.bash("hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
			if !strings.Contains(version, unknownCommit) {
				t.Errorf("-version prints\n%s", version)
			}
		})
	}
}

func TestBuildOfAChangedTree(t *testing.T) {
	c := newClone(t)
	commit := strings.TrimSpace(c.bash("git rev-parse HEAD"))
	version := c.bash("touch new && hack/build.sh -stamp . . bin/sample-controller && bin/sample-controller -version")
	for _, part := range []string{"+dirty\n", commit + ", with uncommitted changes\n"} {
		if !strings.Contains(version, part) {
			t.Errorf("-version does not print %q:\n%s", part, version)
		}
	}
}

// TestCallerChoosesTheCryptographicModule sets GOFIPS140, which decides which of Go's
// cryptographic modules is in the program.
func TestCallerChoosesTheCryptographicModule(t *testing.T) {
	c := newClone(t)
	c.bash("GOFIPS140=latest make image")
	info, err := buildinfo.Read(bytes.NewReader(files(t, c.image())[0].content))
	must(t, err)
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "GOFIPS140", Value: "latest"}) {
		t.Errorf("the program was built with %v, want GOFIPS140=latest", info.Settings)
	}
}
