// SPDX-License-Identifier: Apache-2.0

// Tests of statuses that somebody replaces each time.

package memory

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// written returns what is known after a status of Foo "a" was written some times.
func written(times int) (*Replaced, *clocktesting.FakeClock, *samplev1alpha1.Foo) {
	clock := clocktesting.NewFakeClock(footest.Now.Time)
	r, foo := &Replaced{Clock: clock}, withStatus("a", footest.Settled("a"))
	for range times {
		r.Observe(foo)
	}
	return r, clock, foo
}

func TestTheSameStatusWaitsEachTimeLonger(t *testing.T) {
	for times, want := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second} {
		r, clock, foo := written(times)
		if got := r.Wait(foo); got != want {
			t.Errorf("written %d times, the status waits for %v, want %v", times, got, want)
		}
		if clock.Step(want); r.Wait(foo) != 0 {
			t.Errorf("written %d times, the status waits longer than %v", times, want)
		}
	}
}

func TestASeriesIsThatOfOneStatusOfOneFoo(t *testing.T) {
	later := footest.Settled("a")
	later.Conditions[0].LastTransitionTime = footest.Now
	for what, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		waits bool
	}{
		"the same, with another time": {withStatus("a", later), true},
		"another status":              {withStatus("a", footest.RefusedStatus()), false},
		"another Foo":                 {withStatus("b", footest.Settled("a")), false},
		"another Foo of the name":     {footest.Foo("a", footest.WithFooUID("uid-new"), footest.WithStatus(footest.Settled("a"))), false},
	} {
		r, _, _ := written(9)
		if waits := r.Wait(row.foo) > 0; waits != row.waits {
			t.Errorf("%s waits: %v", what, waits)
		}
		if r.Observe(row.foo); !row.waits && r.Wait(row.foo) > 0 {
			t.Errorf("%s waits after its first write", what)
		}
	}
}

func TestAStatusThatLastsEndsTheSeries(t *testing.T) {
	r, clock, foo := written(3)
	clock.Step(time.Minute)
	r.Wait(foo)
	if r.Observe(foo); r.Wait(foo) > 0 {
		t.Error("a status that lasted a minute is part of a series")
	}
	r, _, foo = written(9)
	if r.Forget(footest.KeyOf(foo)); r.Wait(foo) > 0 {
		t.Error("a Foo that is gone is remembered")
	}
}

func TestWhatIsKnownOfStatusesIsBounded(t *testing.T) {
	r, _, _ := written(0)
	for i := range 2 * mostReplaced {
		r.Observe(withStatus(fmt.Sprint("foo-", i), footest.Settled("a")))
	}
	if len(r.byKey) > mostReplaced {
		t.Errorf("the statuses of %d Foos are remembered", len(r.byKey))
	}
}
