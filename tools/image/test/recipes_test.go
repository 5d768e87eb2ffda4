// SPDX-License-Identifier: Apache-2.0

// Tests of what make passes on to the scripts, with programs that only print it.

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// printer stands for hack/build.sh and hack/licenses.sh. The programs that it makes print their arguments.
const printer = `#!/usr/bin/env bash
mkdir -p "$(dirname "${!#}")"
printf '#!/usr/bin/env bash\nprintf "%%s\\n" "$@"\n' >"${!#}"
chmod +x "${!#}"
`

// newRecipes returns a tree that has nothing but the recipes and their scripts.
func newRecipes(t *testing.T) *clone {
	t.Helper()
	c := &clone{T: t, folder: t.TempDir()}
	root := filepath.Join("..", "..", "..")
	for _, path := range []string{"Makefile", "tools/image/targets.mk", "hack/image.sh", "hack/install-yaml.sh", "hack/build.sh", "hack/licenses.sh", "bin/devcluster"} {
		text := []byte(printer)
		if !slices.Contains([]string{"hack/build.sh", "hack/licenses.sh", "bin/devcluster"}, path) {
			var err error
			text, err = os.ReadFile(filepath.Join(root, path))
			must(t, err)
		}
		must(t, os.MkdirAll(filepath.Join(c.folder, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(c.folder, path), text, 0o755))
	}
	return c
}

// TestTheNameOfAnImageIsNoCode passes names that a branch or a tag can have.
func TestTheNameOfAnImageIsNoCode(t *testing.T) {
	c := newRecipes(t)
	for _, name := range []string{`x:"; touch ran; "`, "x:`touch ran`", "x:$(touch ran)", "x:$$(touch ran)", "x:$(shell touch ran)", "x:'; touch ran; '"} {
		for _, target := range []string{"image", "push-image", "verify-image", "install-yaml"} {
			for _, script := range []string{`make "$1" IMAGE="$2"`, `IMAGE="$2" make "$1"`, `make "$1" IMAGE=x IMAGE_PLATFORMS="$2"`} {
				printed, _, err := c.try(script, target, name)
				if _, missing := os.Stat(filepath.Join(c.folder, "ran")); missing == nil {
					t.Fatalf("%s: make %s runs %s", script, target, name)
				}
				isRefused := target == "install-yaml" || strings.Contains(script, "PLATFORMS")
				if target != "verify-image" && (err != nil) != isRefused || !isRefused && !strings.Contains(printed, "-image="+name+"\n") {
					t.Errorf("%s: make %s with %s: %v\n%s", script, target, name, err, printed)
				}
			}
		}
	}
}

func TestPlatforms(t *testing.T) {
	c := newRecipes(t)
	for script, want := range map[string][]string{
		"make push-image IMAGE=x:1":                             {"linux_amd64", "linux_arm64"},
		"make push-image IMAGE=x:1 IMAGE_PLATFORMS=linux/s390x": {"linux_s390x"},
		"make image": {"linux_" + strings.TrimSpace(c.bash("go env GOHOSTARCH"))},
	} {
		var platforms []string
		for line := range strings.Lines(c.bash(script)) {
			if folder, ok := strings.CutSuffix(line, "/sample-controller\n"); ok {
				platforms = append(platforms, filepath.Base(folder))
			}
		}
		if !slices.Equal(platforms, want) {
			t.Errorf("%s makes programs for %v, not %v", script, platforms, want)
		}
	}
}
