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

// Package signals provides a context that ends at the process's first termination signal.
package signals

import (
	"context"
	"os"
	"os/signal"
)

// SetupSignalHandler returns a context that is cancelled by the first termination signal
// (SIGINT, and SIGTERM if the system has it), so that the program can finish its work. A
// second signal ends the process at once with exit code 1.
//
// Call it only once, from main, because each caller gets the same signals.
func SetupSignalHandler() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, shutdownSignals...)
	go func() {
		<-received
		cancel()
		<-received
		os.Exit(1)
	}()
	return ctx
}
