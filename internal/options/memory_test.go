// SPDX-License-Identifier: Apache-2.0

// Tests of the heap's limit.

package options

import (
	"runtime/debug"
	"testing"
)

func TestTheHeapKeepsToNinetyPercentOfTheMemory(t *testing.T) {
	const before = 1 << 40
	for _, row := range []struct {
		name, limit, own string
		want             int64
		refused          bool
	}{
		{"256 MiB", "268435456", "", 241591905, false},
		{"no limit", "", "", before, false},
		{"GOMEMLIMIT is set", "268435456", "1TiB", before, false},
		{"not a number", "256Mi", "", before, true},
		{"a negative number", "-1", "", before, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv(memoryLimitVariable, row.limit)
			t.Setenv("GOMEMLIMIT", row.own)
			was := debug.SetMemoryLimit(before)
			defer debug.SetMemoryLimit(was)
			err := LimitMemory()
			if got := debug.SetMemoryLimit(-1); got != row.want || (err != nil) != row.refused {
				t.Errorf("The limit is %d (%v), want %d", got, err, row.want)
			}
		})
	}
}
