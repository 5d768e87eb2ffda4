// SPDX-License-Identifier: Apache-2.0

// Tests of what is allowed because of two faults, and only because of these.

package simulation

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/sample-controller/test/footest"
)

func TestOnlyTwoControllersOfWhichOneIsBehindAreInADispute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Name(), footest.FooOwner, once(nil), noFault)
		defer c.end()
		expect := func(when string, want bool) {
			t.Helper()
			if got := c.isDisputed(); got != want {
				t.Errorf("%s: whether there is a dispute is %v", when, got)
			}
		}
		start := func() {
			c.startController() // it lists the Foos, and does not watch them
			advance(time.Second)
		}
		start()
		c.create(footest.FooOwner.Asking("a", "web", 1))
		advance(time.Second)
		expect("one controller is at work", false)
		start()
		expect("the first of two has not seen the Foo", true)
		c.crash(c.connections[0])
		expect("the first has crashed", false)
		advance(time.Second)
		expect("the first has restarted, and listed the Foo", false)
		c.create(footest.FooOwner.Asking("b", "web", 1))
		expect("the event of another Foo is under way", false)
		advance(time.Second)
		expect("it should have arrived", true)
	})
}

// A lost answer excuses no missing event, unless another controller wrote meanwhile.
func TestALostAnswerAloneExcusesNoMissingEvent(t *testing.T) {
	w := workload{before: []step{create("a", "web", 1)}}
	start := onceListed(claimReadyInTime)
	_, baseline := w.runWithoutFaults(t, footest.FooOwner, start)
	at := injectionPoint{"update-status", idIn(footest.FooOwner.Kind, "a"), 1}
	i := slices.IndexFunc(writeFaults, func(f fault) bool { return f.name == "timeout although applied" })
	c := w.runWithFaults(t, footest.FooOwner, start, baseline, injection{at, writeFaults[i]})
	if want := "controller 1 recorded no event for 1 transitions of Foo a"; !slices.Contains(c.violations, want) {
		t.Errorf("the violations are %q, want %q among them", c.violations, want)
	}
}
