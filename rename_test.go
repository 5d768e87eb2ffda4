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

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNothingIsDeletedOnTheWordOfACache(t *testing.T) {
	for name, live := range map[string]struct {
		foo         *samplev1alpha1.Foo
		wanted, old *appsv1.Deployment
	}{
		"the Foo was renamed back":                  {foo("a", withDeploymentName("old"), withGeneration(2)), deployment("a"), deployment("a", named("old"))},
		"the Foo is in deletion":                    {foo("a", beingDeleted), deployment("a"), deployment("a", named("old"))},
		"the Foo was made again":                    {foo("a", withFooUID("uid-new")), deployment("a"), deployment("a", named("old"))},
		"the wanted Deployment is another's by now": {foo("a"), deployment("b"), deployment("a", named("old"))},
		"the wanted Deployment is in deletion":      {foo("a"), deployment("a", terminating), deployment("a", named("old"))},
		"the old Deployment is another's by now":    {foo("a"), deployment("a"), deployment("b", named("old"))},
		"the old Deployment was orphaned":           {foo("a"), deployment("a"), deployment("a", named("old"), withoutOwner)},
		"the old Deployment is in deletion":         {foo("a"), deployment("a"), deployment("a", named("old"), terminating)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, foo("a", withStatus(settled("a"))), deployment("a"), deployment("a", named("old")))
				f.answerGets(live.foo, live.wanted, live.old)
				_ = f.sync(f.ctx, keyOf(foo("a")))
				f.expectWrites(t)
			})
		})
	}
}

func TestOldDeploymentThatIsGoneAlreadyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, foo("a", withStatus(settled("a"))), deployment("a"), deployment("a", named("old")))
		f.kubeClient.PrependReactor("get", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.GetAction).GetName() == "old", nil, apierrors.NewNotFound(deploymentsGR, "old")
		})
		must(t, f.sync(f.ctx, keyOf(foo("a"))))
		f.expectWrites(t)
	})
}

func TestDeleteNamesWhatItDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, foo("a", withStatus(settled("a"))), deployment("a"), deployment("a", named("old"), atVersion("33")))
		must(t, f.sync(f.ctx, keyOf(foo("a"))))
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
		f := newFixture(t, foo("a", withStatus(settled("a"))), deployment("a"))
		defer f.start(2)()
		for generation, name := range []string{"other", "web", "other", "web"} {
			f.updateFoo(t, foo("a", withDeploymentName(name), withGeneration(int64(generation+2))))
		}
		advance(time.Minute)
		left := f.deploymentIndexer.List()
		if len(left) != 1 || left[0].(*appsv1.Deployment).Name != "web" {
			t.Errorf("left are %v", left)
		}
	})
}
