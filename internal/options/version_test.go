// SPDX-License-Identifier: Apache-2.0

// Tests of the answer to -version.

package options

import (
	"runtime/debug"
	"testing"
)

// released returns what the go command records in a program built from a tagged commit.
func released() *debug.BuildInfo {
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
			{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-05-04T03:02:01Z"},
			{Key: "vcs.modified", Value: "false"},
		},
	}
}

func TestVersionOf(t *testing.T) {
	got, want := versionOf(released()), buildVersion{
		version:      "v1.2.3",
		commit:       "0123456789abcdef0123456789abcdef01234567",
		committed:    "2026-05-04T03:02:01Z",
		golang:       "go1.26.0",
		platform:     "linux/arm64",
		clientGo:     "v0.37.4",
		api:          "v0.37.2",
		apimachinery: "v0.37.3",
	}
	if got != want {
		t.Errorf("the version is %#v, not %#v", got, want)
	}
}

func TestVersionSaysWhatIsKnown(t *testing.T) {
	const unknownCommit = "unknown: not built in a git clone"
	for name, row := range map[string]struct {
		change func(*debug.BuildInfo)
		want   string
	}{
		"a release": {
			func(*debug.BuildInfo) {},
			`sample-controller v1.2.3
commit               0123456789abcdef0123456789abcdef01234567
committed            2026-05-04T03:02:01Z
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`,
		},
		"a changed tree, a replaced client-go": {
			func(info *debug.BuildInfo) {
				info.Main.Version = "v1.2.4-0.20260504030201-0123456789ab+dirty"
				info.Settings[len(info.Settings)-1].Value = "true"
				info.Deps[2].Replace = &debug.Module{Path: "../client-go"}
			},
			`sample-controller v1.2.4-0.20260504030201-0123456789ab+dirty
commit               0123456789abcdef0123456789abcdef01234567, with uncommitted changes
committed            2026-05-04T03:02:01Z
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4 => ../client-go
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`,
		},
		"go run, or no git": {
			func(info *debug.BuildInfo) {
				info.Main.Version = "(devel)"
				info.Settings = info.Settings[:3]
			},
			`sample-controller (version unknown)
commit               ` + unknownCommit + `
committed            unknown
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`,
		},
		"go install of a module version": {
			func(info *debug.BuildInfo) { info.Settings = info.Settings[:3] },
			`sample-controller v1.2.3
commit               ` + unknownCommit + `
committed            unknown
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`,
		},
		"another build system": {
			func(info *debug.BuildInfo) { *info = debug.BuildInfo{} },
			`sample-controller (version unknown)
commit               ` + unknownCommit + `
committed            unknown
go                   unknown
k8s.io/client-go     unknown
k8s.io/api           unknown
k8s.io/apimachinery  unknown
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			info := released()
			row.change(info)
			if got := versionOf(info).String(); got != row.want {
				t.Errorf("-version says\n%s\nnot\n%s", got, row.want)
			}
		})
	}
}
