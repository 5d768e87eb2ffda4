/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Tests of ownership: adoption, Deployments of earlier names, other namespaces, webhooks.

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAdoptionIsCheckedLive(t *testing.T) {
	for name, live := range map[string]*appsv1.Deployment{
		"the annotation was removed": footest.Deployment("a", footest.WithoutOwner),
		"another Foo controls it":    footest.Deployment("b", footest.WithAdoptBy("a")),
		"it is being deleted":        footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("a"), footest.Terminating),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("a")))
				f.answerGets(live)
				if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); !errors.Is(err, consistency.ErrStale) {
					t.Errorf("the sync ended with %v", err)
				}
				if wrote, _ := f.written(t); wrote != nil {
					t.Errorf("the Deployment was written: %v", wrote)
				}
			})
		})
	}
}

func TestNothingIsDeletedOnTheBasisOfACacheAlone(t *testing.T) {
	for name, live := range map[string]struct {
		foo         *samplev1alpha1.Foo
		wanted, old *appsv1.Deployment
	}{
		"the Foo was renamed back":                       {footest.Foo("a", footest.WithDeploymentName("old"), footest.WithGeneration(2)), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"the Foo is being deleted":                       {footest.Foo("a", footest.BeingDeleted), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"the Foo was recreated":                          {footest.Foo("a", footest.WithFooUID("uid-new")), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"another Foo now controls the wanted Deployment": {footest.Foo("a"), footest.Deployment("b"), footest.Deployment("a", footest.Named("old"))},
		"the wanted Deployment is being deleted":         {footest.Foo("a"), footest.Deployment("a", footest.Terminating), footest.Deployment("a", footest.Named("old"))},
		"another Foo now controls the old Deployment":    {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("b", footest.Named("old"))},
		"the old Deployment was orphaned":                {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"), footest.WithoutOwner)},
		"the old Deployment is being deleted":            {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"), footest.Terminating)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"), footest.Deployment("a", footest.Named("old")))
				f.answerGets(live.foo, live.wanted, live.old)
				_ = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
				f.expectWrites(t)
			})
		})
	}
}

func TestOldDeploymentThatIsGoneAlreadyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"), footest.Deployment("a", footest.Named("old")))
		f.kubeClient.PrependReactor("get", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.GetAction).GetName() == "old", nil, apierrors.NewNotFound(footest.DeploymentsGR, "old")
		})
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		f.expectWrites(t)
	})
}

func TestDeleteNamesWhatItDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"), footest.AtVersion("33")))
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		for _, action := range f.kubeClient.Actions() {
			if action, ok := action.(clienttesting.DeleteActionImpl); ok {
				conditions := action.DeleteOptions.Preconditions
				if conditions == nil || *conditions.UID != "uid-deployment" || *conditions.ResourceVersion != "33" {
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
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		defer f.start(2)()
		for generation, name := range []string{"other", "web", "other", "web"} {
			f.updateFoo(t, footest.Foo("a", footest.WithDeploymentName(name), footest.WithGeneration(int64(generation+2))))
		}
		advance(time.Minute)
		left := f.deployments.indexer.List()
		if len(left) != 1 || left[0].(*appsv1.Deployment).Name != "web" {
			t.Errorf("the Deployments left are %v", left)
		}
	})
}

// If a webhook reverts an adoption, annotation included, the controller does not retry
// it.
func TestAnAdoptionThatIsUndoneIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("a")))
		f.kubeClient.PrependReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			sent := action.(clienttesting.UpdateAction).GetObject().(*appsv1.Deployment)
			sent.OwnerReferences = nil
			metav1.SetMetaDataAnnotation(&sent.ObjectMeta, samplev1alpha1.AnnotationAdoptBy, "a")
			return false, nil, nil
		})
		defer f.start(2)()
		for range 5 {
			f.resync(t, "a")
		}
		f.expectReady(t, "a", "False DeploymentFailed of 1")
		f.expectWrites(t, "update deployments", "update foos/status")
		if got := f.cachedFoo(t, "a").Status; got.Replicas != 0 || got.Selector != "" {
			t.Errorf("the status counts Pods that are not the Foo's: %+v", got)
		}
	})
}

// A consent is good for one adoption.
func TestConsentToAdoptIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Deployment("a", footest.WithSidecar, footest.WithoutOwner, footest.WithAdoptBy("a")))
		defer f.start(2)()
		advance(time.Second)
		adopted := f.deployment(t, "web").DeepCopy()
		if !plan.IsControlledBy(adopted, footest.Foo("a")) {
			t.Fatal("the Deployment is not adopted")
		}
		footest.ExpectEqual(t, "the annotations", map[string]string{"team": "a"}, adopted.Annotations)

		adopted.OwnerReferences = nil // on purpose, as an orphan deletion does
		f.updateDeployment(t, adopted)
		advance(time.Hour)
		f.expectReady(t, "a", "False DeploymentConflict of 1")
		f.deleteFoo(t, "a")
		advance(time.Second)
		f.createFoo(t, footest.Foo("a", footest.WithFooUID("uid-second")))
		advance(time.Hour)
		if metav1.GetControllerOf(f.deployment(t, "web")) != nil {
			t.Error("a Deployment was adopted again without a new consent")
		}
	})
}

// An owner's UID does not count in another namespace.
func TestDeploymentsOfOtherNamespacesAreIgnored(t *testing.T) {
	elsewhere := func(name string) *appsv1.Deployment {
		return footest.Deployment("a", footest.Named(name), func(deployment *appsv1.Deployment) { deployment.Namespace = "team-b" })
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Deployment("a"), elsewhere("one"), elsewhere("two"))
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		for _, action := range f.kubeClient.Actions() {
			if get, ok := action.(clienttesting.GetAction); ok && get.GetName() != "web" {
				t.Errorf("Deployment %s in another namespace was read", get.GetName())
			}
		}
	})
}

func TestAWebhookThatChangesTheImageIsNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.mirrorImages()
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Second)
		f.expectWrites(t, "create deployments", "update foos/status")

		resync := func() {
			cached := f.cachedFoo(t, "a")
			f.Controller.updateFoo(cached, cached)
			advance(30 * time.Second)
		}
		resync()
		resync()
		f.expectWrites(t)

		scaled := f.cachedFoo(t, "a").DeepCopy()
		*scaled.Spec.Replicas, scaled.Generation = 5, 2
		f.updateFoo(t, scaled)
		advance(time.Second)
		f.expectWrites(t, "update deployments", "update foos/status")
		resync()
		f.expectWrites(t)

		drifted := f.deployment(t, "web").DeepCopy()
		*drifted.Spec.Replicas, drifted.Generation = 9, drifted.Generation+1
		f.updateDeployment(t, drifted)
		advance(time.Second)
		f.expectWrites(t, "update deployments")
		if replicas := *f.deployment(t, "web").Spec.Replicas; replicas != 5 {
			t.Errorf("the Deployment has %d replicas", replicas)
		}
		resync()
		f.expectWrites(t)

		f.deleteFoo(t, "a")
		advance(time.Second)
		if f.deployments.admissionMutations.Len() != 0 {
			t.Error("a deleted Foo is still remembered")
		}
	})
}

// A webhook that is installed after the Deployment was created is detected at the first
// repair.
func TestAWebhookThatUndoesARepairIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("mirror.example.com/nginx:latest")))
		f.mirrorImages()
		defer f.start(2)()
		advance(time.Second)
		f.expectWrites(t, "update deployments", "update foos/status")
		for range 3 {
			cached := f.cachedFoo(t, "a")
			f.Controller.updateFoo(cached, cached)
			advance(30 * time.Second)
		}
		f.expectWrites(t)
	})
}

// The following methods read and write objects as a user or another controller would. The
// fixture's list of writes does not contain their writes. Each write sets a new
// resourceVersion.

func (f *fixture) createFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) updateFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Update(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) deleteFoo(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.fooClient.Tracker().Delete(footest.FoosResource, footest.Namespace, name))
}

func (f *fixture) updateDeployment(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	f.api.Stamp(deployment)
	footest.Must(t, f.kubeClient.Tracker().Update(footest.DeploymentsResource, deployment, footest.Namespace))
}

func (f *fixture) deleteDeployment(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.kubeClient.Tracker().Delete(footest.DeploymentsResource, footest.Namespace, name))
}

// deployment returns a Deployment from the API server.
func (f *fixture) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.DeploymentsResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*appsv1.Deployment)
}

// storedFoo returns a Foo from the API server.
func (f *fixture) storedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := f.fooClient.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) cachedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	foo, err := f.foos.Foos(footest.Namespace).Get(name)
	footest.Must(t, err)
	return foo
}
