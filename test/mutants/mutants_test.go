// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"testing"
)

// TestMutantsApply fails for a mutant whose text has changed, and for two of a name.
func TestMutantsApply(t *testing.T) {
	const root = "../.."
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("there are two mutants %q", m.Name)
		}
		names[m.Name] = true
		if m.IsOfDeletedFolder(root) {
			continue
		}
		if _, err := m.Source(root); err != nil {
			t.Error(err)
		}
	}
}
