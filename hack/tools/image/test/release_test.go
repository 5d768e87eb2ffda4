// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"
)

// TestAReleaseIsRefused changes a tree step by step until it may be released. Each refusal comes before anything is
// built.
func TestAReleaseIsRefused(t *testing.T) {
	c := newTree(t)
	c.bash(`git init -q && printf '# Changelog\n\n## Unreleased\n\n## v1.2.2 (0123456)\n' >CHANGELOG.md && git add -A && git commit -qm one`)
	for _, step := range []struct{ do, version, want string }{
		{"true", "1.2.3", "with a VERSION such as v1.2.3"},
		{"true", "v1.2.3", `the top entry of CHANGELOG.md is "Unreleased", not v1.2.3`},
		{"true", "v1.2.2", `the top entry of CHANGELOG.md is "Unreleased", not v1.2.2`},
		{"sed -i 's/Unreleased/v1.2.3 (89abcdef)/' CHANGELOG.md", "v1.2.3", "the tree has changes"},
		{"git commit -qam two", "v1.2.30", `the top entry of CHANGELOG.md is "v1.2.3 (89abcdef)", not v1.2.30`},
		{"true", "v1.2.3", "the tag v1.2.3 is not at this commit"},
		{"git tag v1.2.3 HEAD~1", "v1.2.3", "the tag v1.2.3 is not at this commit"},
	} {
		c.bash(step.do)
		_, stderr, err := c.try(`hack/release.sh "$1" registry.example.com:5000/sample-controller`, step.version)
		if err == nil || !strings.Contains(stderr, step.want) {
			t.Errorf("after %q, %s: got %v, %q, want %q", step.do, step.version, err, stderr, step.want)
		}
	}
	if built, _, err := c.try("ls _output"); err == nil {
		t.Errorf("a release that was refused built %s", built)
	}
}
