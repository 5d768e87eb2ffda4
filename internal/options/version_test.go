// SPDX-License-Identifier: Apache-2.0

// Tests of the answer to -version.

package options

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// built returns what the go command records in a program built from a tagged commit.
func built() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "example.com/sample-controller", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.37.2"},
			{Path: "k8s.io/apimachinery", Version: "v0.37.3"},
			{Path: "k8s.io/client-go", Version: "v0.37.4"},
		},
		Settings: []debug.BuildSetting{
			{Key: "CGO_ENABLED", Value: "0"},
			{Key: "GOARCH", Value: "arm64"},
			{Key: "GOOS", Value: "linux"},
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-05-04T03:02:01Z"},
			{Key: "vcs.modified", Value: "false"},
		},
	}
}

const builtVersion = `sample-controller v1.2.3
commit               0123456789abcdef0123456789abcdef01234567
committed            2026-05-04T03:02:01Z
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`

func TestVersionSaysWhatIsKnown(t *testing.T) {
	noVCS := func(info *debug.BuildInfo) { info.Settings = info.Settings[:3] }
	const (
		unknownVersion = "sample-controller (version unknown)"
		unknownCommit  = "commit               unknown: not built in a git clone"
		unknownTime    = "committed            unknown"
	)
	for name, row := range map[string]struct {
		change func(*debug.BuildInfo)
		other  map[int]string // lines that differ from builtVersion
	}{
		"a release": {func(*debug.BuildInfo) {}, nil},
		"a changed tree, a replaced client-go": {func(info *debug.BuildInfo) {
			info.Main.Version = "v1.2.4-0.20260504030201-0123456789ab+dirty"
			info.Settings[len(info.Settings)-1].Value = "true"
			info.Deps[2].Replace = &debug.Module{Path: "../client-go"}
		}, map[int]string{
			0: "sample-controller v1.2.4-0.20260504030201-0123456789ab+dirty",
			1: fmt.Sprintf("%-20s %s, with uncommitted changes", "commit", "0123456789abcdef0123456789abcdef01234567"),
			4: "k8s.io/client-go     v0.37.4 => ../client-go",
		}},
		"go run, or no git": {func(info *debug.BuildInfo) {
			info.Main.Version = "(devel)"
			noVCS(info)
		}, map[int]string{0: unknownVersion, 1: unknownCommit, 2: unknownTime}},
		"go install of a module version": {noVCS, map[int]string{1: unknownCommit, 2: unknownTime}},
		"another build system": {func(info *debug.BuildInfo) { *info = debug.BuildInfo{} }, map[int]string{
			0: unknownVersion, 1: unknownCommit, 2: unknownTime, 3: "go                   unknown",
			4: "k8s.io/client-go     unknown", 5: "k8s.io/api           unknown", 6: "k8s.io/apimachinery  unknown",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			info, want := built(), strings.Split(builtVersion, "\n")
			row.change(info)
			for i, line := range row.other {
				want[i] = line
			}
			if got := describeVersion(info); got != strings.Join(want, "\n") {
				t.Errorf("-version says\n%s\nnot\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}
