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

// Tests of the buckets of the indexes.

package plan

import (
	"fmt"
	"testing"

	"example.com/sample-controller/internal/footest"
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
