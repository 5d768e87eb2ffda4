// SPDX-License-Identifier: Apache-2.0

// Command bench measures the controller, other controllers that do the same work, and a
// client without a controller, which is the limit: on the same API server, in turn, in
// one run. Each measurement starts a cluster of its own.
//
//	bench [flags]                 from the root of the repository
//	bench -report                 only write the report, from existing results
//
// The results are written to a file after each measurement. At the end, a report with
// plots is made of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var opts options
	opts.addFlags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil // flags has printed the help
	} else if err != nil {
		return err
	}
	return opts.run(ctx)
}
