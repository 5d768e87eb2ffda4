// SPDX-License-Identifier: Apache-2.0

// What the demo does as a user would.

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

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
		reached <- d.quietly(ctx, append([]string{"wait", "--timeout=" + stepTimeout.String()}, a.until...)...)
	}()
	if err := d.follow(ctx, reached); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe last write came %d ms after yours.\n", d.lasted.Milliseconds())
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
