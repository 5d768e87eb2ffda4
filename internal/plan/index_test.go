// SPDX-License-Identifier: Apache-2.0

// Tests of the buckets of the indexes.

package plan

import (
	"fmt"
	"testing"

	"example.com/sample-controller/test/footest"
)

// Names that share a bucket in one process must not share one in the next. Otherwise
// whoever may write Foos could collect such names, and slow down the handlers for all.
func TestBucketsDifferBetweenProcesses(t *testing.T) {
	first, second := NewBuckets(), NewBuckets()
	flooded, left := first.Of(footest.Namespace+"/web"), 0
	const names = 1000
	for i, found := 0, 0; found < names; i++ {
		name := fmt.Sprintf("%s/web-%d", footest.Namespace, i)
		if first.Of(name) != flooded {
			continue
		}
		found++
		if second.Of(name) == second.Of(footest.Namespace+"/web") {
			left++
		}
	}
	if left > names/10 {
		t.Errorf("of %d names in one bucket, %d also share one in another process", names, left)
	}
}
