// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"testing"
)

// Names that share a bucket in one process must not share one in the next. Otherwise users who
// may write Foos could collect such names, and slow down the handlers for everyone.
func TestBucketsDifferBetweenProcesses(t *testing.T) {
	first, second := newBuckets(), newBuckets()
	flooded, left := first.of("team-a/web"), 0
	const names = 1000
	for i, found := 0, 0; found < names; i++ {
		name := fmt.Sprintf("team-a/web-%d", i)
		if first.of(name) != flooded {
			continue
		}
		found++
		if second.of(name) == second.of("team-a/web") {
			left++
		}
	}
	if left > names/10 {
		t.Errorf("of %d names in one bucket, %d also share one in another process", names, left)
	}
}
