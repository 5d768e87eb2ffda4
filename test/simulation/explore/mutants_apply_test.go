// SPDX-License-Identifier: Apache-2.0

// Whether the texts of the mutants are those of today's code.

package explore

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestMutantsApply fails for a mutant whose text has changed.
func TestMutantsApply(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slices.Concat(common, mutations, guards) {
		t.Run(m.name, func(t *testing.T) { replaced(t, root, m) })
	}
}
