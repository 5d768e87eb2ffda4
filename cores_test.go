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

package main

import "testing"

func TestCoresFollowTheWorkers(t *testing.T) {
	for _, row := range []struct{ workers, available, want int }{
		{1, 8, 1}, {2, 8, 1}, {16, 8, 1}, {17, 8, 2}, {64, 8, 4}, {1000, 8, 8}, {64, 1, 1},
	} {
		if got := coresFor(row.workers, row.available); got != row.want {
			t.Errorf("%d workers use %d of %d cores, not %d", row.workers, got, row.available, row.want)
		}
	}
}
