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

package options

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// memoryLimitVariable names the container's limit of memory in the environment,
// in bytes.
const memoryLimitVariable = "MEMORY_LIMIT"

// LimitMemory makes Go's garbage collector keep the heap below 90 % of the
// container's memory, which $MEMORY_LIMIT names: what Go does not count, such as the
// program itself, takes some of the rest, and a heap that has reached the limit goes
// a little beyond. A GOMEMLIMIT in the environment wins.
//
// GOMEMLIMIT alone would not do: a manifest can refer to the container's limit, but
// not to 90 % of it.
func LimitMemory() error {
	text := os.Getenv(memoryLimitVariable)
	if text == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("%s=%s: want a number of bytes", memoryLimitVariable, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}
