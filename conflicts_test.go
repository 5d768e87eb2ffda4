// SPDX-License-Identifier: Apache-2.0

// Tests of names that are taken: by an earlier Foo, by another Foo, or by an orphan.

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// A Foo that is deleted and created again (kubectl replace --force, a forced upgrade by Helm or
// Flux) waits for the garbage collector, which promises no time.
func TestAFooThatIsRecreatedWaitsForTheCollector(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		advance(time.Second)
		f.deleteFoo("a")
		f.put(footest.Foo("a", footest.WithFooUID("uid-new")))
		advance(time.Minute - time.Second)
		f.expectReady("a", "False Progressing of 1")
		f.expectStalled("")
		advance(2 * time.Second)
		f.expectStalled(conflict)
		f.expectReady("a", "False "+conflict+" of 1")
		footest.ExpectEqual(t, "the writes", []string{writeStatus, writeStatus}, f.takeWrites())
		f.deleteChild("web") // the garbage collector
		advance(time.Second)
		f.expectStalled("")
		f.settle("web")
		advance(time.Minute)
		f.expectReady("a", "True Available of 1")
	})
}

// Once stalled, the Foo stays so when the controller restarts.
func TestWhatIsNotCollectedStaysStalledAfterARestart(t *testing.T) {
	message := `Deployment "web" belongs to an earlier Foo of this name, which is gone, and the garbage collector has not deleted it`
	ready := footest.Ready(metav1.ConditionFalse, conflict, strings.ReplaceAll(message, "Deployment", footest.Primary.Kind), footest.Earlier)
	status := samplev1alpha1.FooStatus{ObservedGeneration: 1, Conditions: footest.Stalled(ready)}
	testRunning(t, world(footest.Foo("a", footest.WithFooUID("uid-new"), footest.WithStatus(status)), footest.Child("a")), func(f *fixture) {
		advance(time.Second)
		f.expectStalled(conflict)
	})
}

// A name that becomes free by itself needs no one to act.
func TestANameThatBecomesFreeByItselfIsNotStalled(t *testing.T) {
	for name, terminating := range map[string]footest.Object{
		"of another Foo": footest.Child("b", footest.Terminating), "an orphan": footest.Child("a", footest.WithoutOwner, footest.Terminating),
	} {
		t.Run(name, func(t *testing.T) {
			testRunning(t, world(footest.Foo("a"), terminating), func(f *fixture) {
				advance(time.Minute)
				f.expectReady("a", "False Terminating of 1")
				f.expectStalled("")
				f.deleteChild("web")
				advance(time.Second)
				f.expectWanted()
			})
		})
	}
}

// rename changes the name of the child that a Foo wants, as a user does.
func (f *fixture) rename(name, child string) {
	f.t.Helper()
	foo := f.storedFoo(name)
	foo.Spec.DeploymentName = child
	foo.Generation++
	f.put(foo)
}

// The Foo "b" releases the name as soon as its own new child is ready.
func TestANameThatIsAboutToBeReleasedIsNotStalled(t *testing.T) {
	testRunning(t, world(footest.Foo("b"), footest.Child("b")), func(f *fixture) {
		advance(time.Second)
		f.rename("b", "api")
		f.put(footest.Foo("a"))
		advance(time.Second)
		f.expectStalled("")
		if ready := f.expectReady("a", "False Progressing of 1"); !strings.Contains(ready.Message, `Foo "b", which no longer wants it`) {
			t.Errorf("the condition is %q", ready.Message)
		}
		f.settle("api")
		advance(time.Second)
		f.expectWanted()
	})
}

// Two Foos that want each other's name, and one whose owner waits for its user, need someone.
func TestANameThatIsNotReleasedStalls(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"swapped": func(f *fixture) { f.rename("b", "other") },
		"suspended": func(f *fixture) {
			suspended := f.storedFoo("b")
			footest.Suspended(suspended)
			f.put(suspended)
			f.rename("b", "api")
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := footest.Foo("a", footest.WithChildName("other"))
			testRunning(t, world(footest.Foo("b"), footest.Child("b"), own, footest.Child("a", footest.Named("other"))), func(f *fixture) {
				advance(time.Second)
				change(f)
				f.rename("a", "web")
				advance(time.Minute)
				f.resync("a")
				f.expectStalled(conflict)
			})
		})
	}
}

// While a changed name waits, the child in service is what an autoscaler and the user see.
func TestTheChildInServiceIsReported(t *testing.T) {
	for name, row := range map[string]struct {
		options []footest.FooOption
		others  []footest.Object
		refused bool
	}{
		"suspended":         {[]footest.FooOption{footest.Suspended}, nil, false},
		"the name is taken": {nil, []footest.Object{footest.Child("b", footest.Named("new"))}, false},
		"being deleted":     {nil, []footest.Object{footest.Child("b", footest.Named("new"), footest.Terminating)}, false},
		"refused":           {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			foo := settledFoo(append(row.options, footest.WithGeneration(2), footest.WithChildName("new"))...)
			objects := world(foo, footest.Child("a"))
			for _, other := range row.others {
				objects = append(objects, other)
			}
			test(t, objects, func(f *fixture) {
				if row.refused {
					f.refuse("create", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
				}
				defer f.start(2)()
				advance(time.Minute)
				want, got := footest.Settled("a"), f.cachedFoo("a").Status
				footest.ExpectEqual(t, "the Pods and their selector", []any{want.Replicas, want.AvailableReplicas, want.Selector},
					[]any{got.Replicas, got.AvailableReplicas, got.Selector})
			})
		})
	}
}

// A user who removes the cause of a refusal, here from the child, need not wait for the back-off.
func TestARefusedAdoptionIsTriedAgainWhenTheChildChanges(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))), func(f *fixture) {
		refused := f.refuse("patch", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		advance(20 * time.Minute)
		refused.over.Store(true)
		f.change("web", func(child footest.Object) { child.SetGeneration(child.GetGeneration() + 1) })
		advance(2 * time.Second)
		f.expectWanted()
	})
}

func TestAFailedReadNamesItsChild(t *testing.T) {
	test(t, world(settledFoo(footest.WithGeneration(2)), footest.Child("a"), oldChild()), func(f *fixture) {
		f.on("get", children, func(action clienttesting.Action) error {
			if action.(clienttesting.GetAction).GetName() == "old" {
				return serverFails
			}
			return nil
		})
		defer f.start(2)()
		advance(time.Minute)
		if ready := footest.ReadyOf(f.cachedFoo("a").Status); !strings.Contains(ready.Message, `"old" could not be checked yet`) {
			t.Errorf("the condition is %q", ready.Message)
		}
	})
}
