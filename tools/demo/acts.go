// SPDX-License-Identifier: Apache-2.0

// The commands of the demo.

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// actPeriod is how often the demo checks whether the next act is due. It is longer than
// pause, so that each act restarts the clock.
const actPeriod = 500 * time.Millisecond

// act is something that the demo does as a user would.
type act struct {
	// command has the arguments of kubectl.
	command []string
	steps   []step
	// took describes the time from the first to the last step.
	took string
	// collects makes the demo wait until the garbage collector watches Foos.
	collects bool
}

// plan lists the acts of a demo: only the first, unless the demo ends by itself.
func plan(exit bool) []act {
	acts := []act{
		{
			command: []string{"apply", "-f", examplePath}, steps: firstSteps(),
			took: "From the Foo to a Ready Pod, and back to the Foo's status",
		}, {
			command: []string{"scale", "foo", exampleFoo, "--replicas=3"}, steps: scaleSteps(),
			took: "From the scaled Foo to 3 Ready Pods, and back to the Foo's status",
		}, {
			command: []string{"delete", "foo", exampleFoo}, steps: deleteSteps(), collects: true,
			took: "From the Foo's deletion to the removal of its last Pod",
		},
	}
	if exit {
		return acts
	}
	return acts[:1]
}

// do carries out the next act.
func (d *demo) do(ctx context.Context) error {
	d.act, d.next = d.next[0], d.next[1:]
	d.steps = d.act.steps
	return d.kubectl(ctx, d.act.command...)
}

// doWhenReady carries out the next act unless it must wait, and reports whether it did.
func (d *demo) doWhenReady(forever context.Context) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(forever, d.timeout, fmt.Errorf("not done within %v (-timeout)", d.timeout))
	defer cancel()
	if d.next[0].collects {
		watched, err := collectorWatches(ctx, d.client)
		if err != nil {
			return false, err
		}
		if !watched && !d.waiting {
			fmt.Fprintln(d.out, "\nWaiting until the garbage collector knows Foos: it looks for new kinds every 30 s.")
		}
		if d.waiting = !watched; d.waiting {
			return false, nil
		}
	}
	fmt.Fprintln(d.out)
	return true, d.do(ctx)
}

// finish prints how long an act took from its first step to its last. After the last act
// it also prints what to try next. It returns true at the end of the demo.
func (d *demo) finish() (ended bool, err error) {
	took := d.stopwatch.last.Sub(d.stopwatch.start).Milliseconds()
	fmt.Fprintf(d.out, "\n%s\n", d.style.paint(green, fmt.Sprintf("%s: %d ms.", d.act.took, took)))
	if len(d.next) > 0 {
		return false, nil
	}
	if err := d.draw(); err != nil {
		return true, err
	}
	if !d.exit {
		d.suggest()
	}
	return d.exit, nil
}

// ownWatches is the number of watches of Foos without the garbage collector's: only the
// controller watches them.
const ownWatches = 1

// collectorWatches reports whether the garbage collector watches Foos. It discovers new
// kinds periodically. If a Foo is deleted before that, it deletes the dependents only
// much later.
func collectorWatches(ctx context.Context, client kubernetes.Interface) (bool, error) {
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("asking the API server who watches Foos: %w", err)
	}
	watches, err := countWatches(metrics, "foos")
	return watches > ownWatches, err
}

// countWatches returns the number of watches of a resource in the API server's metrics.
func countWatches(metrics []byte, resource string) (float64, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	watches := 0.0
	for _, requests := range families["apiserver_longrunning_requests"].GetMetric() {
		labels := map[string]string{}
		for _, label := range requests.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["resource"] == resource && labels["verb"] == "WATCH" {
			watches += requests.GetGauge().GetValue()
		}
	}
	return watches, nil
}
