// SPDX-License-Identifier: Apache-2.0

// Command bare is the limit to compare controllers with. For each Foo without a status it
// creates the Deployment and writes the status, and does nothing else: it has no cache,
// no queue and compares nothing.
//
//	bare -kubeconfig=FILE [-goroutines=N] [-events] [-watch]
//
// After that it waits for a signal, so that its CPU and memory can be read.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var opts options
	flag.StringVar(&opts.kubeconfig, "kubeconfig", "", "path of a kubeconfig")
	flag.IntVar(&opts.goroutines, "goroutines", 2, "number of Foos to write at the same time")
	flag.BoolVar(&opts.events, "events", false, "write one Event for each Foo")
	flag.BoolVar(&opts.watch, "watch", false, "watch Foos and Deployments, and decode and discard the events")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, opts)
	stopped := ctx.Err() != nil
	stop()
	if err != nil && !stopped {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}
