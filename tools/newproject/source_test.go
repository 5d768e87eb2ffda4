// SPDX-License-Identifier: Apache-2.0

// Tests of what new projects do not get.

package main

import "testing"

func TestMatches(t *testing.T) {
	for file, want := range map[string]bool{
		"test/bench/main.go": true, "test/bench": true, "docs/benchmarks.md": true, "docs/benchmarks/a.svg": true,
		"test/benchmark/main.go": false, "devcluster/README.md": false, "docs/contract.md": false, "/metrics": false, ".": false,
	} {
		if got := matches(file, leftOut); got != want {
			t.Errorf("%s: got %v", file, got)
		}
	}
}

func TestRowsAboutWhatIsLeftOut(t *testing.T) {
	o := omission{leftOut, map[string]bool{}, false}
	o.findTargets([]treeFile{
		{path: "test/bench/targets.mk", data: []byte("a := b\ntest-all: budgets\nbudgets: bin/x ## Count\nbin/x: FORCE\n")},
		{path: "devcluster/targets.mk", data: []byte("test-devcluster: ## Test\n")},
	})
	for row, want := range map[string]bool{
		"| the folder | `test/bench/` | x |\n":                     true,
		"| a file in it | `test/bench/main.go` |\n":                true,
		"| a pattern | `docs/benchmarks*` |\n":                     true,
		"| a link | [x](benchmarks.md#size) |\n":                   true,
		"| a link with a path | [x](../tools/newproject/x.go) |\n": true,
		"| a target | `make budgets` |\n":                          true,
		"| a target with a variable | `X=1 make budgets` |\n":      true,
		"| a target that remains | `make test-all` |\n":            false,
		"| a folder that remains | `test/e2e`, `/metrics` |\n":     false,
		"| a link elsewhere | [x](https://x.example/a) |\n":        false,
		"a sentence with `test/bench`\n":                           false,
	} {
		got := string(o.document(treeFile{path: "docs/x.md", data: []byte("before\n\n" + row + "\nafter\n")}))
		if (got == "before\n\nafter\n") != want {
			t.Errorf("%s: got\n%s", row, got)
		}
	}
}
