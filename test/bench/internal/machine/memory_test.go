// SPDX-License-Identifier: Apache-2.0

// Tests of the guard against a machine without memory.

package machine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMeasurementEndsBeforeTheMemoryDoes: the context ends when less than the reserve is
// left, and says what to do; not while the memory lasts or is unknown.
func TestAMeasurementEndsBeforeTheMemoryDoes(t *testing.T) {
	for name, test := range map[string]struct {
		// left is the memory in KiB that each second finds; the last one stays.
		left  []uint64
		known bool
		ends  bool
	}{
		"it lasts":       {left: []uint64{9 << 20, reserve}, known: true},
		"it runs out":    {left: []uint64{9 << 20, 2 << 20, reserve - 1}, known: true, ends: true},
		"it is unknown":  {left: []uint64{0}},
		"little at once": {left: []uint64{0}, known: true, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				ctx, stop := whileMemoryLasts(t.Context(), func() (uint64, bool) {
					reads++
					return test.left[min(reads, len(test.left))-1], test.known
				}, time.Second)
				defer stop()
				time.Sleep(5500 * time.Millisecond) //nolint:forbidigo // in a bubble this moves the clock forward
				synctest.Wait()
				if ended := ctx.Err() != nil; ended != test.ends {
					t.Fatalf("after %d reads the context has ended: %t, want %t", reads, ended, test.ends)
				}
				if cause := context.Cause(ctx); test.ends && !strings.Contains(cause.Error(), "-large") {
					t.Errorf("the cause does not say what to do: %v", cause)
				}
			})
		})
	}
}
