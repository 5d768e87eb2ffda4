// SPDX-License-Identifier: Apache-2.0

// What the demo does as a user would.

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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
		_, err := d.quietly(ctx, append([]string{"wait", "--timeout=" + stepTimeout.String()}, a.until...)...)
		reached <- err
	}()
	if err := d.follow(ctx, reached); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe last write came %d ms after yours.\n", d.lasted.Milliseconds())
	return nil
}

// foosWatches matches the API server's metric of the watches of Foos.
var foosWatches = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{.*resource="foos".*verb="WATCH".*\} (\d+)$`)

// awaitCollector waits until the garbage collector watches Foos, as the controller does. It
// discovers new kinds every 30 s. If a Foo is deleted before that, it deletes the dependents
// only much later.
func (d *demo) awaitCollector(forever context.Context) error {
	ctx, cancel := d.limited(forever)
	defer cancel()
	fmt.Fprintln(d.out, "Waiting until the garbage collector knows Foos: it looks for new kinds every 30 s.")
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		metrics, err := d.quietly(ctx, "get", "--raw=/metrics")
		return countWatches(metrics) > 1, err
	})
}

func countWatches(metrics string) (watches int) {
	for _, match := range foosWatches.FindAllStringSubmatch(metrics, -1) {
		n, _ := strconv.Atoi(match[1]) // it has digits only
		watches += n
	}
	return watches
}
