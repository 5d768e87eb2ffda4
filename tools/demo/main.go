// SPDX-License-Identifier: Apache-2.0

// Command demo shows how a Foo becomes a Pod. It starts a development cluster
// (bin/devcluster), runs the controller in it (bin/sample-controller), applies the
// example Foo, and prints each change that follows: when, by whom, and what. With -exit
// it then scales the Foo and deletes it. At the end it draws the audit log. make demo
// runs it in the root of the checkout.
//
// It reads the API server's audit log, which contains the bodies of requests and
// responses, and prints the entries that tools/internal/timeline makes of them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// Exit codes. The code is 0 if the demo reached its end or the user stopped it.
const (
	exitFailure = 1
	exitUsage   = 2
)

// options are the command's flags.
type options struct {
	exit    bool
	picture string
	timeout time.Duration
	verbose bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		if errors.As(err, new(usageError)) {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailure)
	}
}

// run runs the program as the user starts it, or as devcluster starts it in the cluster.
func run(args []string) error {
	if len(args) > 1 && args[0] == inClusterCommand {
		opts, err := parseOptions(args[2:], os.Stdout)
		if err != nil {
			return err
		}
		return runInCluster(opts, args[1])
	}
	// The program in the cluster uses the flags. Refuse wrong ones before a cluster
	// starts.
	switch _, err := parseOptions(args, os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return becomeCluster(args)
}

// usageError is an error of the command line.
type usageError struct{ error }

func parseOptions(args []string, help io.Writer) (*options, error) {
	var opts options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&opts.exit, "exit", false, "Also scale and delete the Foo, then exit instead of running until Ctrl-C.")
	flags.StringVar(&opts.picture, "picture", picturePath, "The `file` for the picture of the timeline, as SVG. If empty, no picture.")
	flags.DurationVar(&opts.timeout, "timeout", time.Minute, "Timeout of each step.")
	flags.BoolVar(&opts.verbose, "v", false, "Show the controller's log instead of writing it to a file.")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "demo shows how a Foo becomes a Pod, in a temporary cluster.\n\nUsage: bin/demo [flags]\n\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, usageError{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return nil, usageError{fmt.Errorf("unexpected argument %q: this command takes flags only", flags.Arg(0))}
	case opts.timeout <= 0:
		return nil, usageError{fmt.Errorf("-timeout=%v: must be more than 0", opts.timeout)}
	}
	return &opts, nil
}
