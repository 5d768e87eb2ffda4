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
