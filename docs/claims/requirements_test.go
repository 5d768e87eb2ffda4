// SPDX-License-Identifier: Apache-2.0

// A test of CONTRIBUTING.md's table of what the root module requires.

package claims

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// requirement matches a row of the table: a module, and why it is required.
var requirement = regexp.MustCompile("(?m)^\\| `([^` ]+)` \\| (.*) \\|$")

// TestRootModuleRequiresWhatIsAgreed compares the table with go.mod, because every
// program that imports the clients also gets the root module's requirements.
func TestRootModuleRequiresWhatIsAgreed(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	agreed := map[string]string{}
	for _, match := range requirement.FindAllStringSubmatch(section, -1) {
		agreed[match[1]] = match[2]
	}
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = moduleRoot
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(output, &file); err != nil {
		t.Fatal(err)
	}
	for _, require := range file.Require {
		if _, ok := agreed[require.Path]; !ok && !require.Indirect {
			t.Errorf("go.mod requires %s, which is not in the table of CONTRIBUTING.md#dependencies: do without it, use it in a nested module, or add the reason to the table", require.Path)
		}
		if !require.Indirect {
			delete(agreed, require.Path)
		}
	}
	for path := range agreed {
		t.Errorf("CONTRIBUTING.md#dependencies has %s, which go.mod does not require", path)
	}
}
