// SPDX-License-Identifier: Apache-2.0

// Tests of pairs of faults, with controllers that break a rule only after two.

package simulation

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAPairOfFaultsRevealsWhatOneFaultDoesNot(t *testing.T) {
	one, two := faultsThatReveal(t, onceListed(deleteWhatItCannotReadAfterARestart), "sent delete of foos a, which belongs to users")
	if one != "" {
		t.Errorf("a single fault reveals it: %s", one)
	}
	if two == "" {
		t.Error("no pair of faults reveals it")
	}
}

// faultsThatReveal returns a fault whose run has the violation, and a pair of faults.
func faultsThatReveal(t *testing.T, start Start, violation string) (one, two string) {
	t.Helper()
	w := workload{before: []step{"create a web"}}
	isRevealed := func(c *cluster) bool {
		return slices.ContainsFunc(c.violations, func(text string) bool { return strings.Contains(text, violation) })
	}
	c, baseline := w.runWithoutFaults(t, footest.FooOwner, start)
	if isRevealed(c) {
		t.Fatal("the run without faults has the violation")
	}
	for _, first := range injectionsAt(footest.FooOwner, baseline.points) {
		c := w.runWithFaults(t, footest.FooOwner, start, baseline, first)
		if isRevealed(c) {
			one = first.String()
		}
		for _, second := range secondsAfter(footest.FooOwner, first, c.points) {
			if two == "" && isRevealed(w.runWithFaults(t, footest.FooOwner, start, baseline, first, second)) {
				two = first.String() + ", " + second.String()
				t.Logf("revealed by %s", two)
			}
		}
	}
	return one, two
}

// onceListed returns a controller that acts once for each Foo, when it has listed them.
func onceListed(do act) Start {
	return func(ctx context.Context, clients Clients, recorder record.EventRecorder) error {
		for ctx.Err() == nil {
			list, err := clients.Custom.SamplecontrollerV1alpha1().Foos(footest.Namespace).List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(list.Items); i++ {
				_ = do(ctx, clients, recorder, &list.Items[i]) // the run's violations show it
			}
			if err == nil {
				break
			}
			pause(ctx, time.Second)
		}
		<-ctx.Done()
		return nil
	}
}

func deleteWhatItCannotReadAfterARestart(ctx context.Context, clients Clients, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	if foo.Status.ObservedGeneration == 0 {
		return claimReadyInTime(ctx, clients, recorder, foo)
	}
	if _, err := clients.Custom.SamplecontrollerV1alpha1().Foos(footest.Namespace).Get(ctx, foo.Name, metav1.GetOptions{}); err != nil {
		return deleteItsFoo(ctx, clients, recorder, foo)
	}
	return nil
}

func claimReadyInTime(ctx context.Context, clients Clients, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return claimReady(ctx, clients, recorder, foo)
}

func TestASampleOfPairs(t *testing.T) {
	points := make([]injectionPoint, 30)
	for i := range points {
		points[i] = injectionPoint{"event-added", objectID{footest.Primary, "web"}, i + 1}
	}
	all := injectionsAt(footest.FooOwner, points)
	for value, run := range map[string]string{"all": "TestSimulation", "300": "TestSimulation", "5": "TestSimulation/some/a_create/500/a_get/500"} {
		setFlag(t, "simulation.pairs", value)
		setFlag(t, "test.run", run)
		p := newPairs(t)
		sample := p.sampleOf(workload{name: "some"}, baseline{points: points}, footest.FooOwner, nil)
		has := 0
		for _, first := range all {
			has += len(sample.of(first, secondsAfter(footest.FooOwner, first, points)))
		}
		// 7 faults at each of 30 points, and 7 at each later one.
		switch every := 7 * 7 * 30 * 29 / 2; {
		case value == "300" && (has < 250 || has > 350 || len(p.complete) > 0):
			t.Errorf("of %d pairs %d are run, want about 300", every, has)
		case value != "300" && has != every:
			t.Errorf("with -simulation.pairs=%s -run=%s, %d of %d pairs are run, want all", value, run, has, every)
		}
	}
}

// setFlag sets a flag of the test binary until the end of the test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, before) })
}
