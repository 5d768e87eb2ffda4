// SPDX-License-Identifier: Apache-2.0

// Tests of the registration of Foos.

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/external"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestRegistration(t *testing.T) {
	const (
		slow         = "slow" // the registrar does not answer
		mine, theirs = samplev1alpha1.FinalizerRegistered, "example.com/theirs"
		rollingOut   = `Progressing: Deployment "web" is rolling out: 0 available of 2 wanted Pods`
	)
	with := func(finalizers ...string) footest.FooOption {
		return func(foo *samplev1alpha1.Foo) { foo.Finalizers = finalizers }
	}
	known := footest.WithStatus(samplev1alpha1.FooStatus{Conditions: []metav1.Condition{
		{Type: samplev1alpha1.ConditionRegistered, Status: metav1.ConditionTrue, ObservedGeneration: 1},
	}})
	conflict := apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", errors.New("modified"))
	forbidden := apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil)
	type options []footest.FooOption
	for name, row := range map[string]struct {
		of options

		answers    map[string]string // of the registrar to a call, such as "PUT a"
		refused    error             // the first patch of a Foo
		deleted    bool              // by its user, soon
		after      time.Duration
		want       string // "" if the Foo is gone
		finalizers []string
		calls      []string
		children   int
	}{
		"the registration comes before the children":    {options{with(theirs)}, nil, nil, false, 0, rollingOut, []string{theirs, mine}, []string{"PUT a"}, 1},
		"deregistered at the end":                       {options{with(theirs)}, nil, nil, true, 0, "Terminating: The Foo is being deleted", []string{theirs}, []string{"PUT a", "DELETE a"}, 1},
		"a slow registrar":                              {nil, map[string]string{"PUT a": slow}, nil, false, 0, "Progressing: The Foo is being registered", []string{mine}, []string{"PUT a"}, 0},
		"the deadline":                                  {nil, map[string]string{"PUT a": slow}, nil, false, 11 * time.Second, "RegistrationFailed: The Foo cannot be registered: context deadline exceeded", []string{mine}, []string{"PUT a"}, 0},
		"deleted while the registration is under way":   {nil, map[string]string{"PUT a": slow}, nil, true, 0, "Terminating: The Foo is being deregistered", []string{mine}, []string{"PUT a"}, 0},
		"deleted, never registered: it may have been":   {nil, map[string]string{"PUT a": slow}, nil, true, 11 * time.Second, "", nil, []string{"PUT a", "DELETE a"}, 0},
		"deregistration fails":                          {options{with(mine), known}, map[string]string{"DELETE a": "503"}, nil, true, 0, "DeregistrationFailed: The Foo cannot be deregistered: 503", []string{mine}, []string{"DELETE a"}, 1},
		"a restart, registered":                         {options{with(mine), known}, nil, nil, false, 0, rollingOut, []string{mine}, nil, 1},
		"a restart before it was stored":                {options{with(mine)}, nil, nil, false, 0, rollingOut, []string{mine}, []string{"PUT a"}, 1},
		"a restart during deletion":                     {options{footest.BeingDeleted, with(mine), known}, nil, nil, false, 0, "", nil, []string{"DELETE a"}, 0},
		"a new spec does not wait for the registrar":    {options{with(mine), known, footest.WithGeneration(2)}, map[string]string{"PUT a": slow}, nil, false, 0, "Progressing: The Foo is being registered", []string{mine}, []string{"PUT a"}, 1},
		"deleted before the controller saw it":          {options{footest.BeingDeleted, with(theirs)}, nil, nil, false, 0, "Terminating: The Foo is being deleted", []string{theirs}, nil, 0},
		"someone writes it at the same time":            {nil, nil, conflict, false, time.Second, rollingOut, []string{mine}, []string{"PUT a"}, 1},
		"no call before the finalizer could be written": {nil, nil, forbidden, false, 0, "RegistrationFailed: The Foo cannot be registered: writing the finalizer: " + forbidden.Error(), nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []string
				call := func(method string) func(context.Context, plan.Owner) error {
					return func(ctx context.Context, foo plan.Owner) error {
						if foo.GetName() == "a" {
							calls = append(calls, method+" a")
						}
						switch answer := row.answers[method+" "+foo.GetName()]; {
						case foo.GetName() == "b" || answer == slow:
							<-ctx.Done()
							return ctx.Err()
						case answer != "":
							return errors.New(answer)
						}
						return nil
					}
				}
				// One worker, and another Foo that waits for the registrar all the time.
				f := newFixture(t, footest.Foo("b", footest.WithChildName("b"), with(mine)), footest.Foo("a", row.of...))
				f.registration = external.NewRunner(external.Step[plan.Owner]{
					Do: call(http.MethodPut), Undo: call(http.MethodDelete), Timeout: 10 * time.Second, Workers: 2,
				}, f.recheck, f.queue.Add)
				if row.refused != nil {
					f.failTimes(1, "patch", "foos", row.refused)
				}
				defer f.start(1)()
				advance(time.Millisecond)
				if row.deleted {
					footest.Must(t, f.fooClient.SamplecontrollerV1alpha1().Foos(footest.Namespace).Delete(f.ctx, "a", metav1.DeleteOptions{}))
				}
				advance(time.Millisecond + row.after)
				foo, err := f.fooClient.SamplecontrollerV1alpha1().Foos(footest.Namespace).Get(f.ctx, "a", metav1.GetOptions{})
				if row.want != "" || !apierrors.IsNotFound(err) {
					footest.ExpectEqual(t, "Ready", row.want, footest.ReadyOf(foo.Status).Reason+": "+footest.ReadyOf(foo.Status).Message)
					footest.ExpectEqual(t, "finalizers", row.finalizers, foo.Finalizers)
					footest.ExpectEqual(t, "whether the status remembers", row.want == rollingOut, plan.RegisteredGeneration(foo) == foo.Generation)
				}
				footest.ExpectEqual(t, "calls", row.calls, slices.Compact(calls))
				footest.ExpectEqual(t, "children", row.children, len(f.primary.cache.List()))
			})
		})
	}
}

func TestACallIsNotRepeatedOnceAnotherControllerMadeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		call := func(context.Context, plan.Owner) error {
			calls++
			return errors.New("503")
		}
		f := newFixture(t, footest.Foo("a", func(foo *samplev1alpha1.Foo) { foo.Finalizers = []string{samplev1alpha1.FinalizerRegistered} }))
		f.registration = external.NewRunner(external.Step[plan.Owner]{Do: call, Undo: call, Timeout: time.Second, Workers: 1}, f.recheck, f.queue.Add)
		defer f.start(1)()
		advance(time.Second)
		foo, err := f.fooClient.SamplecontrollerV1alpha1().Foos(footest.Namespace).Get(f.ctx, "a", metav1.GetOptions{})
		footest.Must(t, err)
		meta.SetStatusCondition(&foo.Status.Conditions, metav1.Condition{
			Type: samplev1alpha1.ConditionRegistered, Status: metav1.ConditionTrue, ObservedGeneration: foo.Generation, Reason: "Registered",
		})
		_, err = f.fooClient.SamplecontrollerV1alpha1().Foos(footest.Namespace).UpdateStatus(f.ctx, foo, metav1.UpdateOptions{})
		footest.Must(t, err)
		advance(time.Hour)
		footest.ExpectEqual(t, "calls", 1, calls)
	})
}

// always registers at once, for the simulation.
func always() external.Step[plan.Owner] {
	call := func(context.Context, plan.Owner) error { return nil }
	return external.Step[plan.Owner]{Do: call, Undo: call, Timeout: time.Second, Workers: 2}
}

func TestTheExampleOfARegistrar(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		http.NotFound(w, r)
	}))
	defer server.Close()
	for asks, call := range map[string]func(context.Context, plan.Owner) error{"PUT": registrar(server.URL).Do, "DELETE": registrar(server.URL).Undo} {
		err := call(t.Context(), footest.Foo("a"))
		if asked != asks+" /team-a/a?uid=uid-a" || (err == nil) != (asks == "DELETE") {
			t.Errorf("%s: %v", asked, err)
		}
	}
}
