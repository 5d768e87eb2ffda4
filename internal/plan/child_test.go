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
