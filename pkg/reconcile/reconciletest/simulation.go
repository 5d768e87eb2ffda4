// SPDX-License-Identifier: Apache-2.0

// How a workload is run with and without faults.

package reconciletest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// The periods that a controller under test must use.
const (
	// CallTimeout is the deadline of each call, and how long the controller waits until
	// its caches have its own writes.
	CallTimeout = 2 * time.Second
	// ResyncPeriod is the informers' resync period. It is longer than any workload, so
	// that the final state is reached only by events and retries.
	ResyncPeriod = 2 * time.Minute
)

// Start runs a controller until ctx ends, which simulates a crash, and returns when all
// of its goroutines have ended. It is called again for each restart and for each second
// controller, also concurrently, and must keep no state between calls. It makes its clientsets of the
// client, such as kubernetes.New(client).
type Start func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error

// TestController is like Test, for a kind whose rows the caller has. It runs each workload of a
// kind without faults, then once for each injection point of that run and each fault that can
// happen there, and then with a second fault, at points that the run with the first reached after
// it.
func TestController(t *testing.T, owner *rows.OwnerRow, start Start) {
	t.Helper()
	testWorkloads(t, owner, start, workloads(owner), sampling(0))
}

func testWorkloads(t *testing.T, owner *rows.OwnerRow, start Start, workloads []workload, every int) {
	t.Helper()
	traceErrors(t)
	total := 0
	pairs := newPairs(t)
	for i, workload := range workloads {
		if detectorsOn() && namedLevels() == 0 && i%sampledWorkloads != 0 {
			continue
		}
		t.Run(workload.name, func(t *testing.T) {
			c, baseline := workload.runWithoutFaults(t, owner, start)
			c.report(t)
			if t.Failed() {
				return // with faults it would fail, too
			}
			sample := pairs.sampleOf(workload, baseline, owner, start)
			for _, first := range injectionsAt(owner, baseline.points) {
				total++
				if total%every != 0 {
					continue
				}
				t.Run(first.String(), func(t *testing.T) {
					t.Parallel()
					c := workload.runWithFaults(t, owner, start, baseline, first)
					c.report(t)
					if !t.Failed() {
						sample.runAfter(t, first, c.points)
					}
				})
			}
		})
	}
	// Print to stdout, which "go test" without a package name shows even if the test
	// passes.
	fmt.Printf("simulation: %d cases of workload, injection point and fault; 1 of %d was run\n", total, every)
	pairs.report(t)
}

// sampledWorkloads is n to run one workload in n with a detector of races or cache mutations.
const sampledWorkloads = 5

// sampling returns n if one case in n is to be run: see Controller.Every. With a detector of races or cache
// mutations, a run takes a hundred times as long, and a few runs show what it can find. A test named on the
// command line is always run.
func sampling(every int) int {
	switch {
	case namedLevels() >= 2:
		return 1
	case detectorsOn():
		return max(100, 10*every) / sampledWorkloads
	case testing.Short():
		return max(10, every)
	}
	return max(1, every)
}

// namedLevels returns how much the command line names below a test: 1 for a workload, 3 for a point and a fault
// of it, 5 for a pair of faults.
func namedLevels() int { return strings.Count(flag.Lookup("test.run").Value.String(), "/") }

// detectorsOn reports whether races or cache mutations are detected.
func detectorsOn() bool {
	info, _ := debug.ReadBuildInfo()
	race := info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	return race || os.Getenv("KUBE_CACHE_MUTATION_DETECTOR") == "true"
}

// maxCalls bounds the calls and events of a run, unless it has half as many without faults.
const maxCalls = 200

// baseline holds the results of a workload's run without faults.
type baseline struct {
	points []injectionPoint
	world  []rows.Object
}

func noFault(injectionPoint) fault { return fault{} }

func (l workload) runWithoutFaults(t *testing.T, owner *rows.OwnerRow, start Start) (*cluster, baseline) {
	t.Helper()
	var b baseline
	c := l.run(t, owner, start, noFault, func(c *cluster) {
		b.world = c.check(recoveryTime)
		c.checkPromptness()
		if c.refused > 0 {
			c.violationf("%d calls were refused although there was no fault", c.refused)
		}
	})
	b.points = c.points
	return c, b
}

// runWithFaults runs a workload with a fault, or with several in their order. The first must
// be reached, because the run equals the one without faults until then.
func (l workload) runWithFaults(t *testing.T, owner *rows.OwnerRow, start Start, b baseline, injections ...injection) *cluster {
	t.Helper()
	inject := func(point injectionPoint) fault {
		i := slices.IndexFunc(injections, func(i injection) bool { return i.point == point })
		if i < 0 {
			return fault{}
		}
		return injections[i].fault
	}
	return l.run(t, owner, start, inject, func(c *cluster) {
		c.checkAgainst(b.world, c.check(recoveryTime))
		if calls := len(c.points) - c.shared; calls > max(maxCalls, 2*len(b.points)) {
			c.violationf("%d calls and events, with %d in the run without faults", calls, len(b.points))
		}
		if first := injections[0].point; !slices.Contains(c.points, first) {
			c.violationf("%s was never reached: the run differs from the one without faults", first)
		}
	})
}

// run runs a workload in a new cluster, and calls check before the cluster ends.
func (l workload) run(t *testing.T, owner *rows.OwnerRow, start Start, inject func(injectionPoint) fault, check func(*cluster)) *cluster {
	t.Helper()
	var c *cluster
	synctest.Test(t, func(*testing.T) {
		c = newCluster(t.Name(), owner, start, inject)
		defer c.end()
		for _, s := range l.before {
			c.take(s)
			advance(settleTime)
		}
		c.startController()
		advance(settleTime)
		for _, s := range l.steps {
			c.take(s)
			advance(settleTime)
		}
		check(c)
	})
	return c
}

// report fails a test for each violation, with the trace and the command that repeats the
// run.
func (c *cluster) report(t *testing.T) {
	t.Helper()
	if len(c.violations) == 0 {
		return
	}
	for _, violation := range c.violations {
		t.Error(violation)
	}
	t.Logf("trace:\n%s", strings.Join(c.trace, "\n"))
	t.Logf("to repeat it: go test . -count=1 -run '%s'", pattern(t.Name()))
}

// pattern matches one test and no other.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}

// advance moves the clock of a test's bubble forward, then waits until every goroutine in the bubble is
// idle. No real time passes.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
