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

package main

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNothingIsDeletedOnTheWordOfACache(t *testing.T) {
	for name, live := range map[string]struct {
		foo         *samplev1alpha1.Foo
		wanted, old *appsv1.Deployment
	}{
		"the Foo was renamed back":                  {footest.Foo("a", footest.WithDeploymentName("old"), footest.WithGeneration(2)), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"the Foo is in deletion":                    {footest.Foo("a", footest.BeingDeleted), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"the Foo was made again":                    {footest.Foo("a", footest.WithFooUID("uid-new")), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
		"the wanted Deployment is another's by now": {footest.Foo("a"), footest.Deployment("b"), footest.Deployment("a", footest.Named("old"))},
		"the wanted Deployment is in deletion":      {footest.Foo("a"), footest.Deployment("a", footest.Terminating), footest.Deployment("a", footest.Named("old"))},
		"the old Deployment is another's by now":    {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("b", footest.Named("old"))},
		"the old Deployment was orphaned":           {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"), footest.WithoutOwner)},
		"the old Deployment is in deletion":         {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"), footest.Terminating)},
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
		left := f.deploymentIndexer.List()
		if len(left) != 1 || left[0].(*appsv1.Deployment).Name != "web" {
			t.Errorf("left are %v", left)
		}
	})
}
