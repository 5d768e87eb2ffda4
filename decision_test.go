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

	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestDecide(t *testing.T) {
	adoptable := []deploymentOption{withoutOwner, withAdoptBy("a")}
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named *appsv1.Deployment
		want  action
	}{
		"no Deployment":                             {foo("a"), nil, actionCreate},
		"as wanted":                                 {foo("a"), deployment("a"), actionNone},
		"drifted":                                   {foo("a", withReplicas(5)), deployment("a"), actionUpdate},
		"another's":                                 {foo("a"), deployment("b"), actionLeave},
		"nobody's":                                  {foo("a"), deployment("a", withoutOwner), actionLeave},
		"an earlier Foo's":                          {foo("a", withFooUID("uid-new")), deployment("a"), actionLeave},
		"another's, in deletion":                    {foo("a"), deployment("b", terminating), actionLeave},
		"nobody's, handed over":                     {foo("a"), deployment("a", adoptable...), actionAdopt},
		"nobody's, handed over to another":          {foo("a"), deployment("a", withoutOwner, withAdoptBy("b")), actionLeave},
		"another's, handed over":                    {foo("a"), deployment("b", withAdoptBy("a")), actionLeave},
		"handed over, in deletion":                  {foo("a"), deployment("a", append(adoptable, terminating)...), actionLeave},
		"drifted, in deletion":                      {foo("a", withReplicas(5)), deployment("a", terminating), actionWait},
		"no Deployment, but the Foo is in deletion": {foo("a", beingDeleted), nil, actionWait},
		"drifted, but the Foo is in deletion":       {foo("a", beingDeleted, withReplicas(5)), deployment("a"), actionWait},
		"another's, and the Foo is in deletion":     {foo("a", beingDeleted), deployment("b"), actionWait},
		"handed over, but the Foo is in deletion":   {foo("a", beingDeleted), deployment("a", adoptable...), actionWait},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.decide(row.foo, row.named, nil)
			if decided.action != row.want {
				t.Errorf("decided to %s, not to %s", decided.action, row.want)
			}
		})
	}
}

func TestDecideOnDeploymentsOfEarlierNames(t *testing.T) {
	old := deployment("a", named("old"))
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named *appsv1.Deployment
		old   *appsv1.Deployment
		goes  bool
	}{
		"goes once the wanted one is created":       {foo("a"), nil, old, true},
		"goes where the wanted one is there":        {foo("a"), deployment("a"), old, true},
		"goes where the wanted one has drifted":     {foo("a", withReplicas(5)), deployment("a"), old, true},
		"stays while the wanted name is another's":  {foo("a"), deployment("b"), old, false},
		"stays while the wanted one is in deletion": {foo("a"), deployment("a", terminating), old, false},
		"stays while the Foo is in deletion":        {foo("a", beingDeleted), nil, old, false},
		"is left where it is in deletion already":   {foo("a"), nil, deployment("a", named("old"), terminating), false},
		"is left where it is an earlier Foo's":      {foo("a", withFooUID("uid-new")), nil, old, false},
		"is not the one that the Foo asks for now":  {foo("a"), deployment("a"), deployment("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.decide(row.foo, row.named, []*appsv1.Deployment{row.old})
			if goes := len(decided.surplus) == 1; goes != row.goes {
				t.Errorf("goes = %v, not %v", goes, row.goes)
			}
		})
	}
}

func TestUpdateKeepsTheResourceVersion(t *testing.T) {
	desired := shipped.desiredUpdate(deployment("a", atVersion("77")), foo("a", withReplicas(5)))
	if desired.ResourceVersion != "77" {
		t.Errorf("the update is sent with resourceVersion %q, so that it would overwrite a newer state", desired.ResourceVersion)
	}
}

func TestNoUpdateOfWhatIsLiveNoneOfTheFoosOrAsItShouldBe(t *testing.T) {
	for name, live := range map[string]*appsv1.Deployment{
		"as wanted":   deployment("a", scaledTo(5)),
		"another's":   deployment("b"),
		"nobody's":    deployment("a", withoutOwner),
		"in deletion": deployment("a", terminating),
	} {
		if desired := shipped.desiredUpdate(live, foo("a", withReplicas(5))); desired != nil {
			t.Errorf("%s: an update is sent", name)
		}
	}
}
