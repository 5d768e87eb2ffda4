// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewManifest builds a release for this machine, and compares the manifest with the archive.
func TestKrewManifest(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "kubectl-foo_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	for _, line := range []string{
		"./krew.sh v1.2.3 https://dl.example.com/a " + dir + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"tar -xzf " + archive + " -C " + dir,
		"ls " + dir + "/LICENSE " + dir + "/licenses/k8s.io",
		dir + "/kubectl-foo help",
	} {
		words := strings.Fields(line)
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	packed, _ := os.ReadFile(archive)
	manifest, err := os.ReadFile(filepath.Join(dir, "foo.yaml"))
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []any
		}
	}
	if err != nil || yaml.UnmarshalStrict(manifest, &plugin) != nil || len(plugin.Spec.ShortDescription) > 50 {
		t.Fatalf("krew does not accept this manifest (%v):\n%s", err, manifest)
	}
	got := fmt.Sprint(plugin.APIVersion, plugin.Kind, plugin.Metadata, plugin.Spec.Version, plugin.Spec.Platforms)
	want := fmt.Sprintf("krew.googlecontainertools.github.com/v1alpha2Plugin{foo}v1.2.3[map[bin:kubectl-foo selector:map[matchLabels:map[arch:%s os:%s]] sha256:%x uri:https://dl.example.com/a/%s]]",
		runtime.GOARCH, runtime.GOOS, sha256.Sum256(packed), filepath.Base(archive))
	if got != want {
		t.Errorf("the manifest says\n%s, want\n%s", got, want)
	}
}
