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

// Command bare is the limit that a controller is measured against: for each Foo
// without a status it creates the Deployment and writes the status, and does
// nothing else. No cache, no queue, no comparison.
//
//	bare -kubeconfig=FILE [-goroutines=N] [-events] [-watch]
//
// It then waits to be stopped, so that its CPU and memory can be read.
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
	flag.IntVar(&opts.goroutines, "goroutines", 2, "Foos that are worked on at the same time")
	flag.BoolVar(&opts.events, "events", false, "write one Event for each Foo")
	flag.BoolVar(&opts.watch, "watch", false, "watch Foos and Deployments, decode what comes, and throw it away")
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
