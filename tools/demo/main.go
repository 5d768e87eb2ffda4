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
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
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

// act is something that the demo does as a user would.
type act struct {
	// command has the arguments of kubectl, and until those of kubectl wait, which returns
	// at the end of the act.
	command, until []string
	// collects makes the demo wait until the garbage collector watches Foos.
	collects bool
}

// actsOf returns the acts of a demo: only the first, unless the demo ends by itself.
func actsOf(exit bool) []act {
	acts := []act{
		{
			command: []string{"apply", "-f", examplePath},
			until:   []string{"foo/" + exampleFoo, "--for=condition=Ready"},
		}, {
			command: []string{"scale", "foo", exampleFoo, "--replicas=3"},
			until:   []string{"foo/" + exampleFoo, "--for=jsonpath={.status.availableReplicas}=3"},
		}, {
			command:  []string{"delete", "foo", exampleFoo},
			until:    []string{"pod", "--selector=controller=" + exampleFoo, "--for=delete"},
			collects: true,
		},
	}
	if exit {
		return acts
	}
	return acts[:1]
}

// perform carries out an act, and prints what follows until its end.
func (d *demo) perform(forever context.Context, a act) error {
	fmt.Fprintln(d.out)
	if a.collects {
		if err := d.awaitCollector(forever); err != nil {
			return err
		}
	}
	ctx, cancel := d.limited(forever)
	defer cancel()
	if err := d.kubectl(ctx, a.command...); err != nil {
		return err
	}
	reached := make(chan error, 1)
	go func() {
		reached <- d.quietly(ctx, append([]string{"wait", "--timeout=" + d.timeout.String()}, a.until...)...)
	}()
	if err := d.follow(ctx, reached); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s\n", d.paint(green, fmt.Sprintf("The last write came %d ms after yours.", d.lasted.Milliseconds())))
	return nil
}

// awaitCollector waits until the garbage collector watches Foos. It discovers new kinds
// every 30 s. If a Foo is deleted before that, it deletes the dependents only much later.
func (d *demo) awaitCollector(forever context.Context) error {
	ctx, cancel := d.limited(forever)
	defer cancel()
	said := false
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		watched, err := collectorWatches(ctx, d.client)
		if err == nil && !watched && !said {
			fmt.Fprintln(d.out, "Waiting until the garbage collector knows Foos: it looks for new kinds every 30 s.")
			said = true
		}
		return watched, err
	})
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for the garbage collector's watch of Foos: %w", context.Cause(ctx))
	}
	return err
}

// ownWatches is the number of watches of Foos without the garbage collector's: only the
// controller watches them.
const ownWatches = 1

func collectorWatches(ctx context.Context, client kubernetes.Interface) (bool, error) {
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("asking the API server who watches Foos: %w", err)
	}
	watches, err := countWatches(metrics, "foos")
	return watches > ownWatches, err
}

// countWatches returns the number of watches of a resource in the API server's metrics.
func countWatches(metrics []byte, resource string) (watches int, err error) {
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, "apiserver_longrunning_requests{") || !strings.Contains(line, `,verb="WATCH"`) ||
			!strings.Contains(line, `,resource="`+resource+`"`) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]))
		if err != nil {
			return 0, fmt.Errorf("reading the API server's metrics: %w", err)
		}
		watches += n
	}
	return watches, nil
}
