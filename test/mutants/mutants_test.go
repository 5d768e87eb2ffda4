// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"testing"
)

// TestMutantsApply fails for a mutant whose place is not there or not the only one, and for two
// of a name.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("there are two mutants %q", m.Name)
		}
		names[m.Name] = true
		if _, _, err := m.Apply("../.."); err != nil && !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
	}
}
