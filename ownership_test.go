// SPDX-License-Identifier: Apache-2.0

// Tests of ownership: adoption, children of earlier names, other namespaces.

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/failure"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAdoptionIsCheckedLive(t *testing.T) {
	for name, live := range map[string]footest.Object{
		"the annotation was removed": footest.Child("a", footest.WithoutOwner),
		"another Foo controls it":    footest.Child("b", footest.WithAdoptBy("a")),
		"it is being deleted":        footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"), footest.Terminating),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a")))
				f.answerGets(live)
				if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); !errors.Is(err, failure.ErrBehind) {
					t.Errorf("the sync ended with %v", err)
				}
				if wrote, _ := f.written(t); wrote != nil {
					t.Errorf("the child was written: %v", wrote)
				}
			})
		})
	}
}

func TestNothingIsDeletedOnTheBasisOfACacheAlone(t *testing.T) {
	for name, live := range map[string]struct {
		foo         *samplev1alpha1.Foo
		wanted, old footest.Object
	}{
		"the Foo was renamed back":                  {footest.Foo("a", footest.WithChildName("old"), footest.WithGeneration(2)), footest.Child("a"), footest.Child("a", footest.Named("old"))},
		"the Foo is being deleted":                  {footest.Foo("a", footest.BeingDeleted), footest.Child("a"), footest.Child("a", footest.Named("old"))},
		"the Foo was recreated":                     {footest.Foo("a", footest.WithFooUID("uid-new")), footest.Child("a"), footest.Child("a", footest.Named("old"))},
		"another Foo now controls the wanted child": {footest.Foo("a"), footest.Child("b"), footest.Child("a", footest.Named("old"))},
		"the wanted child is being deleted":         {footest.Foo("a"), footest.Child("a", footest.Terminating), footest.Child("a", footest.Named("old"))},
		"another Foo now controls the old child":    {footest.Foo("a"), footest.Child("a"), footest.Child("b", footest.Named("old"))},
		"the old child was orphaned":                {footest.Foo("a"), footest.Child("a"), footest.Child("a", footest.Named("old"), footest.WithoutOwner)},
		"the old child is being deleted":            {footest.Foo("a"), footest.Child("a"), footest.Child("a", footest.Named("old"), footest.Terminating)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"), footest.Child("a", footest.Named("old")))
				f.answerGets(live.foo, live.wanted, live.old)
				_ = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
				f.expectWrites(t)
			})
		})
	}
}

func TestOldChildThatIsGoneAlreadyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"), footest.Child("a", footest.Named("old")))
		f.kubeClient.PrependReactor("get", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.GetAction).GetName() == "old", nil, apierrors.NewNotFound(footest.ChildGR, "old")
		})
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		f.expectWrites(t)
	})
}

func TestDeleteNamesWhatItDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"), footest.Child("a", footest.Named("old"), footest.AtVersion("33")))
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		for _, action := range f.kubeClient.Actions() {
			if action, ok := action.(clienttesting.DeleteActionImpl); ok {
				conditions := action.DeleteOptions.Preconditions
				if conditions == nil || *conditions.UID != footest.Child("a").GetUID() || *conditions.ResourceVersion != "33" {
					t.Errorf("the delete has the preconditions %v", conditions)
				}
				return
			}
		}
		t.Error("nothing was deleted")
	})
}

func TestRenameThereAndBackEndsWithTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		for generation, name := range []string{"other", "web", "other", "web"} {
			f.updateFoo(t, footest.Foo("a", footest.WithChildName(name), footest.WithGeneration(int64(generation+2))))
		}
		advance(time.Minute)
		left := f.primary.cache.List()
		if len(left) != 1 || left[0].(footest.Object).GetName() != "web" {
			t.Errorf("the children left are %v", left)
		}
	})
}

// If a webhook reverts an adoption, annotation included, the controller does not retry
// it.
func TestAnAdoptionThatIsUndoneIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a")))
		f.api.Admit = func(_ string, sent footest.Object) error {
			if footest.Primary.Is(sent) {
				footest.WithoutOwner(sent)
				footest.WithAdoptBy("a")(sent)
			}
			return nil
		}
		defer f.start(2)()
		for range 5 {
			f.resync(t, "a")
		}
		f.expectReady(t, "a", "False "+failed+" of 1")
		f.expectWrites(t, updateChild, "update foos/status")
		if got := f.cachedFoo(t, "a").Status; got.Replicas != 0 || got.Selector != "" {
			t.Errorf("the status counts Pods that are not the Foo's: %+v", got)
		}
	})
}

// A consent is good for one adoption.
func TestConsentToAdoptIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("a", footest.WithTeam, footest.WithoutOwner, footest.WithAdoptBy("a")))
		defer f.start(2)()
		advance(time.Second)
		adopted := f.storedChild(t, "web").DeepCopyObject().(footest.Object)
		if !f.kind.IsControlledBy(adopted, footest.Foo("a")) {
			t.Fatal("the child is not adopted")
		}
		footest.ExpectEqual(t, "the annotations", map[string]string{"team": "a"}, adopted.GetAnnotations())

		footest.WithoutOwner(adopted) // on purpose, as an orphan deletion does
		f.updateChild(t, adopted)
		advance(time.Hour)
		f.expectReady(t, "a", "False "+conflict+" of 1")
		f.deleteFoo(t, "a")
		advance(time.Second)
		f.createFoo(t, footest.Foo("a", footest.WithFooUID("uid-second")))
		advance(time.Hour)
		if metav1.GetControllerOf(f.storedChild(t, "web")) != nil {
			t.Error("a child was adopted again without a new consent")
		}
	})
}

// An owner's UID does not count in another namespace.
func TestChildrenOfOtherNamespacesAreIgnored(t *testing.T) {
	elsewhere := func(name string) footest.Object {
		return footest.Child("a", footest.Named(name), func(child footest.Object) { child.SetNamespace("team-b") })
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("a"), elsewhere("one"), elsewhere("two"))
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		for _, action := range f.kubeClient.Actions() {
			if get, ok := action.(clienttesting.GetAction); ok && get.GetName() != "web" {
				t.Errorf("child %s in another namespace was read", get.GetName())
			}
		}
	})
}
