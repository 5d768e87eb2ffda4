// SPDX-License-Identifier: Apache-2.0

// Tests of others: those who undo the controller's writes, and those who have the name that a Foo wants.

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// undo changes the child back, as another client, 10 ms after each of the controller's updates,
// until it is over.
func (f *fixture) undo() (over *atomic.Bool) {
	over = &atomic.Bool{}
	f.On("patch", children, func(clienttesting.Action) error {
		time.AfterFunc(10*time.Millisecond, func() {
			if !over.Load() {
				f.change("web", footest.Drifted)
			}
		})
		return nil
	})
	// The fake clientset stores no managedFields.
	f.Kube.PrependReactor("get", children, func(clienttesting.Action) (bool, runtime.Object, error) {
		live := f.StoredChild("web")
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "scaler", FieldsV1: metav1.NewFieldsV1(`{"f:spec": {"f:replicas": {}}}`)}})
		return true, live, nil
	})
	return over
}

func TestAFightIsDampedAndTold(t *testing.T) {
	// The opponent stops, or sets the Foo's desired state.
	for _, ends := range []func(f *fixture){func(*fixture) {}, func(f *fixture) { f.Put(footest.Child("a")) }} {
		testRunning(t, atRest(), func(f *fixture) { f.fight(ends) })
	}
}

func (f *fixture) fight(ends func(f *fixture)) {
	over := f.undo()
	f.change("web", footest.Drifted)
	advance(time.Hour)
	if updates, statuses := f.Count(updateChild), f.Count(writeStatus); updates > 30 || statuses > 5 {
		f.T.Errorf("an hour of a fight led to %d updates and %d statuses", updates, statuses)
	}
	ready := f.ExpectReady("a", "False "+failed+" of 1")
	if !strings.Contains(ready.Message, `changed back after each repair, most recently by "scaler"`) {
		f.T.Errorf("the condition is %+v", ready)
	}
	f.expectStalled(failed)
	over.Store(true)
	ends(f)
	advance(16 * time.Minute) // the longest pause, and twice that
	f.expectWanted()
	f.settle("web")
	advance(time.Minute)
	f.ExpectReady("a", "True Available of 1")
	f.expectStalled("")
	f.change("web", footest.Drifted)
	advance(time.Second)
	f.expectWanted()
	f.expectStalled("") // one repair is no fight
}

// Carrying out a spec is not a repair until the status for it is stored. If no status can be
// stored, all later updates are repairs.
func TestAFightIsDampedAlthoughNoStatusIsStored(t *testing.T) {
	test(t, world(settledFoo(footest.WithGeneration(2)), footest.Child("a", footest.Drifted)), func(f *fixture) {
		f.undo()
		f.Refuse("update", "foos", denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		advance(time.Minute)
		if updates := f.Count(updateChild); updates > 12 {
			t.Errorf("a minute of a fight led to %d updates", updates)
		}
	})
}

// The first write of a new spec may be undone before the next sync, which then is a repair.
func TestAfterItsFirstWriteASpecIsNotNew(t *testing.T) {
	test(t, world(settledFoo(footest.WithGeneration(2)), footest.Child("a", footest.Drifted)), func(f *fixture) {
		footest.Must(t, f.sync())
		if known := f.known.Of(f.cachedFoo("a")).Child(footest.Primary.Kind); !known.IsRepair(f.cachedFoo("a")) {
			t.Errorf("after the write, %+v is known", known)
		}
	})
}

// The same with a definition that has no status subresource, such as upstream's.
func TestAFightIsDampedWithoutAStatusSubresource(t *testing.T) {
	for name, fight := range map[string]func(f *fixture){
		"over a field": func(f *fixture) { f.undo(); f.change("web", footest.Drifted) },
		"by deletions": func(f *fixture) { f.deleteEachTime(); f.DeleteChild("web") },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a"), footest.Child("a")), func(f *fixture) {
				f.Refuse("update", "foos", fooGone)
				defer f.start(2)()
				advance(time.Second)
				fight(f)
				advance(10 * time.Second)
				if writes := f.Count(updateChild) + f.Count(createChild); writes > 8 {
					t.Errorf("10 s of a fight led to %d writes", writes)
				}
			})
		})
	}
}

// deleteEachTime deletes the child, as another client, 10 ms after each creation, until it is over.
func (f *fixture) deleteEachTime() (over *atomic.Bool) {
	over = &atomic.Bool{}
	f.On("create", children, func(clienttesting.Action) error {
		time.AfterFunc(10*time.Millisecond, func() {
			if !over.Load() {
				f.DeleteChild("web")
			}
		})
		return nil
	})
	return over
}

// A child that is deleted always has another UID.
func TestAFightOfDeletionsIsDampedAndTold(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		advance(time.Second)
		over := f.deleteEachTime()
		f.DeleteChild("web")
		advance(time.Hour)
		if creations, statuses := f.Count(createChild), f.Count(writeStatus); creations > 30 || statuses > 2*creations {
			t.Errorf("an hour of a fight led to %d creations and %d statuses", creations, statuses)
		}
		if ready := f.ExpectReady("a", "False "+failed+" of 1"); !strings.Contains(ready.Message, `"web" is deleted after each creation`) {
			t.Errorf("the condition is %q", ready.Message)
		}
		f.expectStalled(failed)
		over.Store(true)
		advance(6 * time.Minute) // the longest pause
		f.expectWanted()
		f.settle("web")
		advance(16 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
	})
}

// Another client creates a child that the Foo does not want, with the Foo as its controller.
func TestAFightOfRecreationsIsDampedAndTold(t *testing.T) {
	testRunning(t, atRest(oldChild()), func(f *fixture) {
		advance(time.Second)
		var over atomic.Bool
		recreate := func() {
			if !over.Load() {
				f.Put(oldChild())
			}
		}
		f.On("delete", children, func(clienttesting.Action) error {
			time.AfterFunc(10*time.Millisecond, recreate)
			return nil
		})
		recreate()
		advance(time.Hour)
		if deletions := f.Count(deleteChild); deletions > 30 {
			t.Errorf("an hour of a fight led to %d deletions", deletions)
		}
		if ready := f.ExpectReady("a", "False "+failed+" of 1"); !strings.Contains(ready.Message, `"old", which is no longer wanted, is created again`) {
			t.Errorf("the condition is %q", ready.Message)
		}
		over.Store(true)
		advance(20 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
		if left := len(f.primary.row.Cache.List()); left != 1 {
			t.Errorf("%d children are left", left)
		}
	})
}

// An opponent with a fixed interval, such as a downscaler, is repaired at once each time. The Foo
// is ready in between, and an Event names the opponent, from its third change on.
func TestAnOpponentThatActsOnceInAWhileIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		period time.Duration
		want   []string
	}{
		"by default": {0, []string{"Warning RepairsUndone", "Warning RepairsUndone", "Warning RepairsUndone"}},
		// An administrator may let slower opponents count as a fight.
		"within -fight-period": {time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, atRest(), func(f *fixture) {
				if row.period > 0 {
					f.fightPeriod = row.period
				}
				f.undo().Store(true)
				defer f.start(2)()
				advance(time.Second)
				var told []string
				for range 5 {
					f.change("web", footest.Drifted)
					advance(time.Second)
					f.settle("web")
					advance(69 * time.Second)
					for _, event := range f.Recorded() {
						if reason, message, _ := strings.Cut(event, " "+footest.Primary.Kind+" "); strings.Contains(reason, "RepairsUndone") {
							told = append(told, reason)
							if !strings.Contains(message, `most recently by "scaler"`) {
								t.Errorf("the Event is %q", event)
							}
						}
					}
				}
				footest.ExpectEqual(t, "the Events about the opponent", row.want, told)
				if row.period > 0 {
					f.expectStalled(failed)
				} else {
					f.ExpectReady("a", "True Available of 1")
				}
			})
		})
	}
}

// A spec that could not be carried out at once is still a new spec: its second attempt is no
// repair, and does not wait as one.
func TestASecondAttemptIsNoRepair(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		advance(time.Second)
		for replicas := range int32(6) {
			f.FailTimes(1, "patch", children, serverFails)
			f.scale("a", 3+replicas)
			advance(time.Second)
		}
		f.scale("a", 8) // a new spec that needs no write
		advance(time.Second)
		if known := f.known.Of(f.cachedFoo("a")).Child(footest.Primary.Kind); known.Repairs("update web").Count() > 0 || !known.IsRepair(f.cachedFoo("a")) {
			t.Errorf("after changes of the spec, %+v is known", known)
		}
	})
}

// Objects to delete, one of which the API server refuses to delete: it backs off alone.
func TestARefusedDeletionDoesNotBlockOthers(t *testing.T) {
	var obsolete []runtime.Object
	for i := range 20 {
		obsolete = append(obsolete, footest.Child("a", footest.Named(fmt.Sprintf("old-%02d", i))))
	}
	test(t, atRest(obsolete...), func(f *fixture) {
		refused, over := map[string]*atomic.Int32{"old-00": {}, "old-07": {}, "old-19": {}}, atomic.Bool{}
		f.On("delete", children, func(action clienttesting.Action) error {
			calls := refused[action.(clienttesting.DeleteAction).GetName()]
			if calls == nil || over.Load() {
				return nil
			}
			calls.Add(1)
			return denial(http.StatusForbidden, metav1.StatusReasonForbidden)
		})
		defer f.start(2)()
		advance(time.Second)
		footest.ExpectEqual(t, "how many children are left", 1+len(refused), len(f.primary.row.Cache.List()))
		advance(time.Hour)
		for name, calls := range refused {
			if calls.Load() < 12 || calls.Load() > 25 {
				t.Errorf("in an hour, the deletion of %s was tried %d times", name, calls.Load())
			}
		}
		if ready := f.ExpectReady("a", "False "+failed+" of 1"); !strings.Contains(ready.Message, `deleting the earlier`) {
			t.Errorf("the condition is %q", ready.Message)
		}
		f.expectStalled(failed)
		over.Store(true)
		advance(10 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
	})
}

// A Foo that is deleted and created again (kubectl replace --force, a forced upgrade by Helm or
// Flux) waits for the garbage collector, which promises no time.
func TestAFooThatIsRecreatedWaitsForTheCollector(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		advance(time.Second)
		f.DeleteFoo("a")
		f.Put(footest.Foo("a", footest.WithFooUID("uid-new")))
		advance(time.Minute - time.Second)
		f.ExpectReady("a", "False Progressing of 1")
		f.expectStalled("")
		advance(2 * time.Second)
		f.expectStalled(conflict)
		f.ExpectReady("a", "False "+conflict+" of 1")
		footest.ExpectEqual(t, "the writes", []string{writeStatus, writeStatus}, f.TakeWrites())
		f.DeleteChild("web") // the garbage collector
		advance(time.Second)
		f.expectStalled("")
		f.settle("web")
		advance(time.Minute)
		f.ExpectReady("a", "True Available of 1")
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
				f.ExpectReady("a", "False Terminating of 1")
				f.expectStalled("")
				f.DeleteChild("web")
				advance(time.Second)
				f.expectWanted()
			})
		})
	}
}

// The Foo "b" releases the name as soon as its own new child is ready.
func TestANameThatIsAboutToBeReleasedIsNotStalled(t *testing.T) {
	testRunning(t, world(footest.Foo("b"), footest.Child("b")), func(f *fixture) {
		advance(time.Second)
		f.rename("b", "api")
		f.Put(footest.Foo("a"))
		advance(time.Second)
		f.expectStalled("")
		if ready := f.ExpectReady("a", "False Progressing of 1"); !strings.Contains(ready.Message, `Foo "b", which no longer wants it`) {
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
			suspended := f.StoredFoo("b")
			footest.Suspended(suspended)
			f.Put(suspended)
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
