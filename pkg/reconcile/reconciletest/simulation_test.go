// SPDX-License-Identifier: Apache-2.0

// Tests of the simulation itself, with controllers that each break one rule, and of its
// faults and their pairs.

package reconciletest

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// act is what a controller under test does for each Foo.
type act func(ctx context.Context, client rest.Interface, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error

func TestBrokenControllersAreDetected(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start Start
		// violation is part of the message of a reported violation.
		violation string
	}{
		{"does nothing", once(nil), "Foo a has no " + footest.Primary.Kind + " web"},
		{"returns", func(context.Context, rest.Interface, record.EventRecorder) error { return nil }, "returned although its context had not ended"},
		{"fails at its end", func(ctx context.Context, _ rest.Interface, _ record.EventRecorder) error {
			<-ctx.Done()
			return errors.New("failed")
		}, "returned an error: failed"},
		{"polls", func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
			for ctx.Err() == nil {
				forEachFoo(ctx, client, recorder, nil)
				pause(ctx, time.Minute)
			}
			return nil
		}, "the calls do not end: [list foos "},
		{"never pauses", func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
			for ctx.Err() == nil {
				forEachFoo(ctx, client, recorder, nil)
			}
			return nil
		}, "the controllers do not come to rest: 20000 calls and events"},
		{"uses a resource without a row", once(readPod), `TestBrokenControllersAreDetected/uses_a_resource_without_a_row: the controller uses the resource "pods"`},
		{"calls what is not simulated", once(deleteFoos), "the simulation has no deletecollection of foos"},
		{"writes the Foo", once(scaleItsFoo), "changed fields of others in foos a"},
		{"deletes the Foo", once(deleteItsFoo), "sent delete of foos a, which belongs to users"},
		{"creates its child twice", once(createTwice), "although its own write 0s ago"},
		{"writes without a change", once(rewrite), "sent a write of foos a that changes nothing"},
		{"reports Ready too early", once(claimReady), "a reports Ready for generation 1"},
		{"records no event", once(claimReady), "recorded no event for 1 transitions of Foo a"},
		{"records an event without a transition", once(recordEvent), "sent the event Available on Foo a without a transition"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := workload{before: []step{"create a web"}}
			c := w.run(t, footest.FooOwner, tt.start, noFault, func(c *cluster) { c.check(recoveryTime) })
			if !slices.ContainsFunc(c.violations, func(violation string) bool { return strings.Contains(violation, tt.violation) }) {
				t.Errorf("no violation contains %q:\n%s", tt.violation, strings.Join(c.violations, "\n"))
			}
		})
	}
}

// once returns a controller that acts once for each Foo, when it has listed them.
func once(do act) Start {
	return func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
		for !forEachFoo(ctx, client, recorder, do) {
			pause(ctx, time.Second)
		}
		<-ctx.Done()
		return nil
	}
}

// forEachFoo reports whether it could list the Foos, or need not any more.
func forEachFoo(ctx context.Context, client rest.Interface, recorder record.EventRecorder, do act) bool {
	list, err := clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).List(ctx, metav1.ListOptions{})
	for i := 0; do != nil && err == nil && i < len(list.Items); i++ {
		_ = do(ctx, client, recorder, &list.Items[i]) // the run's violations show it
	}
	return err == nil || ctx.Err() != nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func readPod(ctx context.Context, client rest.Interface, _ record.EventRecorder, _ *samplev1alpha1.Foo) error {
	_, err := kubernetes.New(client).CoreV1().Pods(rows.Namespace).Get(ctx, "web-0", metav1.GetOptions{})
	return err
}

func deleteFoos(ctx context.Context, client rest.Interface, _ record.EventRecorder, _ *samplev1alpha1.Foo) error {
	return clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func deleteItsFoo(ctx context.Context, client rest.Interface, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	return clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).Delete(ctx, foo.Name, metav1.DeleteOptions{})
}

func scaleItsFoo(ctx context.Context, client rest.Interface, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	foo.Spec.Replicas = new(int32(2))
	_, err := clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).Update(ctx, foo, metav1.UpdateOptions{})
	return err
}

func createTwice(ctx context.Context, client rest.Interface, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	create := func() error {
		request := kubernetes.New(client).CoreV1().RESTClient().Post().Namespace(foo.Namespace).Resource(footest.Primary.Resource.Resource)
		return request.Body(footest.Primary.New(foo)).Do(ctx).Error()
	}
	return errors.Join(create(), create())
}

func rewrite(ctx context.Context, client rest.Interface, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	_, err := clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{})
	return err
}

func claimReady(ctx context.Context, client rest.Interface, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	foo.Status.ObservedGeneration = foo.Generation
	foo.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: foo.Generation}}
	return rewrite(ctx, client, nil, foo)
}

func recordEvent(_ context.Context, _ rest.Interface, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	recorder.Event(foo, "Normal", "Available", "")
	return nil
}

func TestAListShowsTheStateOfItsVersion(t *testing.T) {
	api, a := newAPIServer(), objectID{footest.FooKind, "a"}
	api.commit(a, rows.Change{Event: watch.Added, Object: footest.Foo("a")})
	api.commit(a, rows.Change{Event: watch.Deleted, Object: footest.Foo("a")})
	if then, now := api.list(footest.FooKind, 1), api.list(footest.FooKind, api.version()); len(then) != 1 || len(now) != 0 {
		t.Errorf("the lists before and after a deletion have %v and %v", then, now)
	}
}

func TestALaterHoldDoesNotEndAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{heldUntil: map[*rows.Kind]time.Time{}}
		c.hold(footest.FooKind, longDelay)
		c.hold(footest.FooKind, shortDelay)
		if held := c.held(footest.FooKind); held != longDelay {
			t.Errorf("the watch is held for %s, want %s", held, longDelay)
		}
	})
}

func TestAdmissionsAreInForceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Name(), footest.FooOwner, once(nil), noFault)
		defer c.end()
		refusal := apierrors.NewTooManyRequests("", 1)
		now := time.Now()
		c.mutatedUntil, c.refusedUntil, c.refusal = now.Add(2*time.Second), now.Add(time.Second), refusal
		for _, want := range []struct{ refuses, mutates bool }{{true, true}, {false, true}, {false, false}} {
			if _, err := c.admit(footest.Primary.ForeignNamed("web")); (err != nil) != want.refuses || c.mutatesWrites() != want.mutates {
				t.Errorf("after %s the error is %v, and whether writes are mutated is %v", time.Since(now), err, c.mutatesWrites())
			}
			footest.Advance(time.Second)
		}
	})
}

// A watch that is resumed after the one that dropped an event has later events only.
func TestADroppedEventIsListedAlthoughItsWatchEnds(t *testing.T) {
	var expired time.Duration
	rewatch := func(ctx context.Context, client rest.Interface, _ record.EventRecorder) error {
		foos, began := clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace), time.Now()
		list, err := foos.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for ctx.Err() == nil && expired == 0 {
			watch, err := foos.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				return err
			}
			for event := range watch.ResultChan() {
				if _, isError := event.Object.(*metav1.Status); isError {
					expired = time.Since(began)
				} else {
					list.ResourceVersion = event.Object.(rows.Object).GetResourceVersion()
				}
			}
		}
		<-ctx.Done()
		return nil
	}
	inject := func(point injectionPoint) fault {
		name := map[int]string{1: "dropped until a relist", 2: "watch ends after it"}[point.n]
		i := slices.IndexFunc(eventFaults, func(f fault) bool { return f.name == name && strings.HasPrefix(point.verb, eventVerb) })
		if i < 0 {
			return fault{}
		}
		return eventFaults[i]
	}
	w := workload{steps: []step{"create a web; scale a 2; scale a 3"}}
	w.run(t, footest.FooOwner, rewatch, inject, func(*cluster) { footest.Advance(recoveryTime) })
	if expired < longDelay || expired > longDelay+settleTime+time.Second {
		t.Errorf("the watch ended with 410 Gone after %s", expired)
	}
}

// A lost answer excuses no missing event, unless another controller wrote meanwhile.
func TestALostAnswerAloneExcusesNoMissingEvent(t *testing.T) {
	w := workload{before: []step{"create a web"}}
	start := once(claimReady)
	_, baseline := w.runWithoutFaults(t, footest.FooOwner, start)
	at := injectionPoint{"update-status", objectID{footest.FooKind, "a"}, 1}
	i := slices.IndexFunc(writeFaults, func(f fault) bool { return f.name == "timeout although applied" })
	c := w.runWithFaults(t, footest.FooOwner, start, baseline, injection{at, writeFaults[i]})
	if want := "controller 1 recorded no event for 1 transitions of Foo a"; !slices.Contains(c.violations, want) {
		t.Errorf("the violations are %q, want %q among them", c.violations, want)
	}
}

func TestAPairOfFaultsRevealsWhatOneFaultDoesNot(t *testing.T) {
	one, two := faultsThatReveal(t, once(deleteWhatItCannotReadAfterARestart), "sent delete of foos a, which belongs to users")
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

func deleteWhatItCannotReadAfterARestart(ctx context.Context, client rest.Interface, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	if foo.Status.ObservedGeneration == 0 {
		return claimReady(ctx, client, recorder, foo)
	}
	if _, err := clientset.New(client).SamplecontrollerV1alpha1().Foos(rows.Namespace).Get(ctx, foo.Name, metav1.GetOptions{}); err != nil {
		return deleteItsFoo(ctx, client, recorder, foo)
	}
	return nil
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
