// SPDX-License-Identifier: Apache-2.0

// Tests of rows in general.

package plan

import (
	"testing"
)

func TestARowMustBeWhole(t *testing.T) {
	whole := shipped
	if err := whole.Check(); err != nil {
		t.Errorf("a whole row: %v", err)
	}
	for want, change := range map[string]func(*Child[primary]){
		`the row of the kind "` + shipped.Kind + `" lacks Keep`: func(row *Child[primary]) { row.Keep = nil },
		`the row of the kind "" lacks Kind, SetOwned`:           func(row *Child[primary]) { row.Kind, row.SetOwned = "", nil },
	} {
		row := shipped
		change(&row)
		if err := row.Check(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %q", err, want)
		}
	}
}
