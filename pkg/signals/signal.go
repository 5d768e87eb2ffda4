// SPDX-License-Identifier: Apache-2.0

// Package signals provides a context that ends at the process's first termination signal.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SetupSignalHandler returns a context that the first termination signal (SIGINT or SIGTERM)
// cancels, so that the program can finish its work. A second signal ends the process at once
// with exit code 1.
//
// Call it only once, from main, because every call receives the same signals.
func SetupSignalHandler() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-received
		cancel()
		<-received
		os.Exit(1)
	}()
	return ctx
}
