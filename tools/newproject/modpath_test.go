// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for module paths.

package main

import "testing"

// TestCheckModulePath has paths that golang.org/x/mod/module.CheckPath v0.41.0 accepts,
// and others that it refuses.
func TestCheckModulePath(t *testing.T) {
	for _, path := range []string{
		"acme.dev", "github.com/acme/widgets", "github.com/acme/widgets/v2", "github.com/acme/widgets/v10", "a-b.example/x",
		"example.org/net/Edge.Routes", "example.org/_x/~y/-z", "example.org/v2x", "example.org/vv2", "example.org/v", "a..b/c", "0.1/x",
		"example.org/x~y", "example.org/x~1y", "example.org/lpt10", "example.org/x.con",
	} {
		if err := checkModulePath(path); err != nil {
			t.Errorf("%s was refused: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "/", "widgets", "widgets/x.y", "GitHub.com/acme/widgets", "-a.dev/x", ".dev/x", "acme./x", "under_score.dev/x",
		"github.com//widgets", "github.com/acme/", "/github.com/acme", "github.com/acme/my widgets", "github.com/acme/w\u00efdgets",
		"github.com/.acme", "github.com/acme.", "github.com/..", "github.com/acme/a+b", "github.com/acme/a@v1",
		"github.com/acme/v0", "github.com/acme/v1", "github.com/acme/v02", "github.com/acme/v2.1", "acme.dev/v1",
		"github.com/acme/CON", "github.com/acme/nul.x", "con.dev/x", "github.com/acme/x~1", "github.com/acme/x~1.y",
	} {
		if err := checkModulePath(path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

func TestSplitMajor(t *testing.T) {
	for path, want := range map[string][2]string{
		"github.com/acme/widgets":     {"github.com/acme/widgets", ""},
		"github.com/acme/widgets/v2":  {"github.com/acme/widgets", "v2"},
		"github.com/acme/widgets/v12": {"github.com/acme/widgets", "v12"},
		"github.com/acme/v2x":         {"github.com/acme/v2x", ""},
	} {
		if prefix, major := splitMajor(path); prefix != want[0] || major != want[1] {
			t.Errorf("%s: got %q and %q", path, prefix, major)
		}
	}
}
