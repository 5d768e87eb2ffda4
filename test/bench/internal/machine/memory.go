// SPDX-License-Identifier: Apache-2.0

// A guard against a machine without memory, on which the kernel kills any process.

package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// reserve is the memory, in KiB, that a measurement must leave to all others.
	reserve = 1 << 20
	// memoryInterval is how often the memory is read.
	memoryInterval = time.Second
)

// WhileMemoryLasts returns a context that is cancelled, with a cause, when the machine has
// almost no memory left. Call stop in the end.
func WhileMemoryLasts(ctx context.Context) (guarded context.Context, stop func()) {
	return whileMemoryLasts(ctx, available, memoryInterval)
}

func whileMemoryLasts(ctx context.Context, available func() (kib uint64, known bool), interval time.Duration) (guarded context.Context, stop func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			if kib, known := available(); known && kib < reserve {
				cancel(fmt.Errorf("the machine has only %d MiB of memory left, and %d are left to others: measure fewer Foos, with -large", kib>>10, reserve>>10))
				return
			}
			select {
			case <-ticker.C:
			case <-guarded.Done():
				return
			}
		}
	}()
	return guarded, func() { cancel(nil) }
}

// available returns the memory that programs can still get, if it is known.
func available() (kib uint64, known bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, false
	}
	memory, err := fs.Meminfo()
	if err != nil || memory.MemAvailable == nil {
		return 0, false
	}
	return *memory.MemAvailable, true
}
