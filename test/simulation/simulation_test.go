// SPDX-License-Identifier: Apache-2.0

// Tests of the simulation itself, with controllers that each break one rule.

package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// web is the child of the Foo a.
var web = child{footest.Primary, "web"}

// act is what a controller under test does for each Foo.
type act func(ctx context.Context, clients Clients, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error

func TestBrokenControllersAreDetected(t *testing.T) {
	checkDetected(t, []broken{
		{"does nothing", once(nil), "Foo a has no " + footest.Primary.Kind + " web"},
		{"returns", func(context.Context, Clients, record.EventRecorder) error { return nil }, "returned although its context had not ended"},
		{"fails at its end", func(ctx context.Context, _ Clients, _ record.EventRecorder) error {
			<-ctx.Done()
			return errors.New("failed")
		}, "returned an error: failed"},
		{"polls", func(ctx context.Context, clients Clients, recorder record.EventRecorder) error {
			for ctx.Err() == nil {
				forEachFoo(ctx, clients, recorder, nil)
				pause(ctx, time.Minute)
			}
			return nil
		}, "the calls do not end: list foos 6 times"},
		{"uses a resource without a row", once(readPod), `TestBrokenControllersAreDetected/uses_a_resource_without_a_row: the controller uses the resource "pods"`},
		{"calls what is not simulated", once(deleteFoos), "the simulation has no deletecollection of foos "},
		{"writes the Foo", once(scaleItsFoo), "changed fields of others in foos a"},
		{"deletes the Foo", once(deleteItsFoo), "sent delete of foos a, which belongs to users"},
		{"writes without a change", once(rewrite), "sent a write of foos a that changes nothing"},
		{"reports Ready too early", once(claimReady), "a reports Ready for generation 1"},
		{"records no event", once(claimReady), "recorded no event for 1 transitions of Foo a"},
		{"records an event without a transition", once(recordEvent), "sent the event Available on Foo a without a transition"},
	})
}

// broken is a controller that breaks a rule.
type broken struct {
	name  string
	start Start
	// violation is part of the message of a reported violation.
	violation string
}

func checkDetected(t *testing.T, controllers []broken) {
	t.Helper()
	for _, tt := range controllers {
		t.Run(tt.name, func(t *testing.T) {
			w := workload{before: []step{createForeign(child{footest.Primary, "foreign"}), create("a", "web", 1)}}
			c := w.run(t, footest.FooOwner, tt.start, noFault, func(c *cluster) { c.check(recoveryTime) })
			if !slices.ContainsFunc(c.violations, func(violation string) bool { return strings.Contains(violation, tt.violation) }) {
				t.Errorf("no violation contains %q:\n%s", tt.violation, strings.Join(c.violations, "\n"))
			}
		})
	}
}

// once returns a controller that acts once for each Foo, when it starts.
func once(do act) Start {
	return func(ctx context.Context, clients Clients, recorder record.EventRecorder) error {
		forEachFoo(ctx, clients, recorder, do)
		<-ctx.Done()
		return nil
	}
}

func forEachFoo(ctx context.Context, clients Clients, recorder record.EventRecorder, do act) {
	list, err := clients.Custom.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || do == nil {
		return
	}
	for i := range list.Items {
		if err := do(ctx, clients, recorder, &list.Items[i]); err != nil {
			return // the run's violations show it
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func readPod(ctx context.Context, clients Clients, _ record.EventRecorder, _ *samplev1alpha1.Foo) error {
	_, err := clients.Kubernetes.CoreV1().Pods(namespace).Get(ctx, "web-0", metav1.GetOptions{})
	return err
}

func deleteFoos(ctx context.Context, clients Clients, _ record.EventRecorder, _ *samplev1alpha1.Foo) error {
	return clients.Custom.SamplecontrollerV1alpha1().Foos(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func deleteItsFoo(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	return clients.Custom.SamplecontrollerV1alpha1().Foos(namespace).Delete(ctx, foo.Name, metav1.DeleteOptions{})
}

func scaleItsFoo(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	foo.Spec.Replicas = new(int32(2))
	_, err := clients.Custom.SamplecontrollerV1alpha1().Foos(namespace).Update(ctx, foo, metav1.UpdateOptions{})
	return err
}

func controllerRef(foo *samplev1alpha1.Foo) metav1.OwnerReference {
	return *metav1.NewControllerRef(foo, samplev1alpha1.SchemeGroupVersion.WithKind("Foo"))
}

func rewrite(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	_, err := clients.Custom.SamplecontrollerV1alpha1().Foos(namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{})
	return err
}

func claimReady(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	foo.Status.ObservedGeneration = foo.Generation
	foo.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: foo.Generation}}
	return rewrite(ctx, clients, nil, foo)
}

func recordEvent(_ context.Context, _ Clients, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	recorder.Event(foo, "Normal", "Available", "")
	return nil
}
