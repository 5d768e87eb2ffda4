/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Tests of docs/tour.md: its links to code, and its patches.

package claims

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeLink matches a name that the tour links to the file that declares it, in this
// repository or in client-go.
var codeLink = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\((\\.\\./|https://github\\.com/kubernetes/client-go/blob/v[0-9.]+/)([a-zA-Z0-9_/]+\\.go)\\)")

// clientGoLink matches a link to a file of client-go.
var clientGoLink = regexp.MustCompile(`https://github\.com/kubernetes/client-go/blob/(v[0-9.]+)/`)

// diffBlock matches a patch that the tour shows.
var diffBlock = regexp.MustCompile("(?s)\n```diff\n(.*?\n)```\n")

func TestLinkedNamesInTourAreInTheirFiles(t *testing.T) {
	links := codeLink.FindAllStringSubmatch(read(t, "docs", "tour.md"), -1)
	if len(links) < 20 {
		t.Fatalf("The tour links %d names, want more", len(links))
	}
	clientGo := clientGoModule(t)
	for _, link := range links {
		name, folder, file := link[1], moduleRoot, link[3]
		if clientGoLink.MatchString(link[2]) {
			folder = clientGo.folder
		}
		if !declaredIn(t, filepath.Join(folder, file))[name] {
			t.Errorf("docs/tour.md says that %s is in %s: it is not", name, file)
		}
	}
	for _, link := range clientGoLink.FindAllStringSubmatch(read(t, "docs", "tour.md"), -1) {
		if link[1] != clientGo.version {
			t.Errorf("docs/tour.md links client-go %s, and go.mod has %s", link[1], clientGo.version)
		}
	}
}

func TestTourShowsItsPatches(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(moduleRoot, "docs", "tour", "*.patch"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no patches of the tour: %v", err)
	}
	tour := read(t, "docs", "tour.md")
	shown := map[string]bool{}
	for _, block := range diffBlock.FindAllStringSubmatch(tour, -1) {
		shown[block[1]] = true
	}
	for _, file := range files {
		name := filepath.Base(file)
		patch := read(t, "docs", "tour", name)
		if !shown[patch] {
			t.Errorf("docs/tour.md does not show docs/tour/%s unchanged", name)
		}
		delete(shown, patch)
		if !strings.Contains(tour, "git apply docs/tour/"+name+"\n") {
			t.Errorf("docs/tour.md does not apply docs/tour/%s", name)
		}
	}
	for _, patch := range slices.Sorted(maps.Keys(shown)) {
		t.Errorf("docs/tour.md shows a patch that no file in docs/tour contains:\n%s", patch)
	}
}

// module is the version of a Go module and the folder of its files.
type module struct{ version, folder string }

func clientGoModule(t *testing.T) module {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", "k8s.io/client-go")
	command.Dir = moduleRoot
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	version, folder, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return module{version, folder}
}
