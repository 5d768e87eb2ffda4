// SPDX-License-Identifier: Apache-2.0

// The limit of Go's heap, from the container's memory limit.

package options

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// memoryLimitVariable is the environment variable with the container's memory limit, in
// bytes.
const memoryLimitVariable = "MEMORY_LIMIT"

// LimitMemory sets the limit at which Go's garbage collector keeps the heap to 90 % of
// the container's memory limit, $MEMORY_LIMIT. The rest is for memory that Go does not
// count, such as the program itself, and for a heap that exceeds its limit a little.
// GOMEMLIMIT in the environment takes precedence.
//
// GOMEMLIMIT alone is not enough, because a manifest can refer to the container's limit
// but not to 90 % of it.
func LimitMemory() error {
	text := os.Getenv(memoryLimitVariable)
	if text == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("%s=%s: must be a number of bytes", memoryLimitVariable, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}
