// SPDX-License-Identifier: Apache-2.0

// Tests of the answer to -version.

package options

import (
	"runtime/debug"
	"strings"
	"testing"
)

// What the go command records in a program built from a tagged commit, and what -version
// makes of that.
const (
	built = `mod	example.com/sample-controller	v1.2.3
dep	k8s.io/api	v0.37.2
dep	k8s.io/apimachinery	v0.37.3
dep	k8s.io/client-go	v0.37.4
build	GOARCH=arm64
build	GOOS=linux
build	vcs.revision=0123456789abcdef
build	vcs.time=2026-05-04T03:02:01Z
build	vcs.modified=false
`
	builtVersion = `sample-controller v1.2.3
commit               0123456789abcdef
committed            2026-05-04T03:02:01Z
go                   go1.26.0 linux/arm64
k8s.io/client-go     v0.37.4
k8s.io/api           v0.37.2
k8s.io/apimachinery  v0.37.3
`
)

func TestVersionSaysWhatIsKnown(t *testing.T) {
	noVCS := []string{"build\tvcs.revision=0123456789abcdef\n", "", "build\tvcs.time=2026-05-04T03:02:01Z\n", "", "build\tvcs.modified=false\n", ""}
	unknownCommit := []string{"  0123456789abcdef", "  unknown: not built in a git clone", "2026-05-04T03:02:01Z", "unknown"}
	unknown := func(known ...string) (replacements []string) {
		for _, text := range known {
			replacements = append(replacements, text, "unknown")
		}
		return replacements
	}
	for name, row := range map[string]struct{ recorded, says []string }{ // old and new, in turn
		"a release": {},
		"a changed tree, a replaced client-go": {
			[]string{"v1.2.3", "v1.2.4-0.20260504030201-0123456789ab+dirty", "modified=false", "modified=true", "v0.37.4", "v0.37.4\n=>\t../client-go\t\t"},
			[]string{"v1.2.3", "v1.2.4-0.20260504030201-0123456789ab+dirty", "abcdef\n", "abcdef, with uncommitted changes\n", "v0.37.4", "v0.37.4 => ../client-go"},
		},
		"go run, or no git":              {append(noVCS, "v1.2.3", "(devel)"), append(unknownCommit, "v1.2.3", "(version unknown)")},
		"go install of a module version": {noVCS, unknownCommit},
		"another build system": {
			[]string{built, ""},
			append(unknownCommit, append(unknown("go1.26.0 linux/arm64", "v0.37.4", "v0.37.2", "v0.37.3"), "v1.2.3", "(version unknown)")...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := debug.ParseBuildInfo(strings.NewReplacer(row.recorded...).Replace(built))
			must(t, err)
			if len(info.Settings) > 0 {
				info.GoVersion = "go1.26.0" // the text does not have it
			}
			want := strings.NewReplacer(row.says...).Replace(builtVersion)
			if got := describeVersion(info); got != want {
				t.Errorf("-version says\n%s\nnot\n%s", got, want)
			}
		})
	}
}
