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

// Command demo shows a Foo become a Pod. It starts a development cluster (bin/devcluster), runs the controller in
// it (bin/sample-controller), applies the example Foo, and prints each change that follows: when, by whom, and
// what. With -exit it then scales the Foo and deletes it. At the end it draws all of that. It is run in the root of
// the checkout, by make demo.
//
// Watches report what changed and in which order (changes.go); the API server's audit log
// reports who did it and when (audit.go). timeline.go joins the two, describe.go
// describes a change, and steps.go lists the changes that must follow what acts.go does.
// picture.go draws the audit log.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/klog/v2"
)

// Exit codes: 0 for a demo that came to its end or was stopped by hand.
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
	// What client-go has to say of a cluster that goes away, devcluster says better.
	klog.SetLogger(klog.Logger{})
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		if errors.As(err, new(usageError)) {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailure)
	}
}

// run is the program twice: as the user starts it, and as it starts itself in a cluster.
func run(args []string) error {
	if len(args) > 1 && args[0] == inClusterCommand {
		opts, err := parseOptions(args[2:], os.Stdout)
		if err != nil {
			return err
		}
		return runInCluster(opts, args[1])
	}
	// The flags are for the second time, but what is wrong with them is best said before a cluster starts.
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
