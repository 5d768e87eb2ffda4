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
