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

import (
	"os"
	"runtime"
)

// workersPerCore is how many workers keep a core busy no more than half: each
// waits for the API server nearly all the time.
const workersPerCore = 16

// useCores has Go run its goroutines on as many cores as the workers can use, for
// two workers on one. With more, Go's scheduler and its garbage collector look for
// work on the cores that are idle, and find little: 16 % of the controller's CPU.
// A GOMAXPROCS in the environment stands.
func useCores(workers int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(coresFor(workers, runtime.GOMAXPROCS(0)))
	}
}

func coresFor(workers, available int) int {
	return min(available, 1+(workers-1)/workersPerCore)
}
