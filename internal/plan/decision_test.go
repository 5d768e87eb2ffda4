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

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestDecide(t *testing.T) {
	adoptable := []footest.DeploymentOption{footest.WithoutOwner, footest.WithAdoptBy("a")}
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named *appsv1.Deployment
		want  Action
	}{
		"no Deployment":                             {footest.Foo("a"), nil, ActionCreate},
		"as wanted":                                 {footest.Foo("a"), footest.Deployment("a"), ActionNone},
		"drifted":                                   {footest.Foo("a", footest.WithReplicas(5)), footest.Deployment("a"), ActionUpdate},
		"another's":                                 {footest.Foo("a"), footest.Deployment("b"), ActionLeave},
		"nobody's":                                  {footest.Foo("a"), footest.Deployment("a", footest.WithoutOwner), ActionLeave},
		"an earlier Foo's":                          {footest.Foo("a", footest.WithFooUID("uid-new")), footest.Deployment("a"), ActionLeave},
		"another's, in deletion":                    {footest.Foo("a"), footest.Deployment("b", footest.Terminating), ActionLeave},
		"nobody's, handed over":                     {footest.Foo("a"), footest.Deployment("a", adoptable...), ActionAdopt},
		"nobody's, handed over to another":          {footest.Foo("a"), footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("b")), ActionLeave},
		"another's, handed over":                    {footest.Foo("a"), footest.Deployment("b", footest.WithAdoptBy("a")), ActionLeave},
		"handed over, in deletion":                  {footest.Foo("a"), footest.Deployment("a", append(adoptable, footest.Terminating)...), ActionLeave},
		"drifted, in deletion":                      {footest.Foo("a", footest.WithReplicas(5)), footest.Deployment("a", footest.Terminating), ActionWait},
		"no Deployment, but the Foo is in deletion": {footest.Foo("a", footest.BeingDeleted), nil, ActionWait},
		"drifted, but the Foo is in deletion":       {footest.Foo("a", footest.BeingDeleted, footest.WithReplicas(5)), footest.Deployment("a"), ActionWait},
		"another's, and the Foo is in deletion":     {footest.Foo("a", footest.BeingDeleted), footest.Deployment("b"), ActionWait},
		"handed over, but the Foo is in deletion":   {footest.Foo("a", footest.BeingDeleted), footest.Deployment("a", adoptable...), ActionWait},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, nil)
			if decided.Action != row.want {
				t.Errorf("decided to %s, not to %s", decided.Action, row.want)
			}
		})
	}
}

func TestDecideOnDeploymentsOfEarlierNames(t *testing.T) {
	old := footest.Deployment("a", footest.Named("old"))
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named *appsv1.Deployment
		old   *appsv1.Deployment
		goes  bool
	}{
		"goes once the wanted one is created":       {footest.Foo("a"), nil, old, true},
		"goes where the wanted one is there":        {footest.Foo("a"), footest.Deployment("a"), old, true},
		"goes where the wanted one has drifted":     {footest.Foo("a", footest.WithReplicas(5)), footest.Deployment("a"), old, true},
		"stays while the wanted name is another's":  {footest.Foo("a"), footest.Deployment("b"), old, false},
		"stays while the wanted one is in deletion": {footest.Foo("a"), footest.Deployment("a", footest.Terminating), old, false},
		"stays while the Foo is in deletion":        {footest.Foo("a", footest.BeingDeleted), nil, old, false},
		"is left where it is in deletion already":   {footest.Foo("a"), nil, footest.Deployment("a", footest.Named("old"), footest.Terminating), false},
		"is left where it is an earlier Foo's":      {footest.Foo("a", footest.WithFooUID("uid-new")), nil, old, false},
		"is not the one that the Foo asks for now":  {footest.Foo("a"), footest.Deployment("a"), footest.Deployment("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, []*appsv1.Deployment{row.old})
			if goes := len(decided.Obsolete) == 1; goes != row.goes {
				t.Errorf("goes = %v, not %v", goes, row.goes)
			}
		})
	}
}

func TestUpdateKeepsTheResourceVersion(t *testing.T) {
	desired := shipped.DesiredUpdate(footest.Deployment("a", footest.AtVersion("77")), footest.Foo("a", footest.WithReplicas(5)))
	if desired.ResourceVersion != "77" {
		t.Errorf("the update is sent with resourceVersion %q, so that it would overwrite a newer state", desired.ResourceVersion)
	}
}

func TestNoUpdateOfWhatIsLiveNoneOfTheFoosOrAsItShouldBe(t *testing.T) {
	for name, live := range map[string]*appsv1.Deployment{
		"as wanted":   footest.Deployment("a", footest.ScaledTo(5)),
		"another's":   footest.Deployment("b"),
		"nobody's":    footest.Deployment("a", footest.WithoutOwner),
		"in deletion": footest.Deployment("a", footest.Terminating),
	} {
		if desired := shipped.DesiredUpdate(live, footest.Foo("a", footest.WithReplicas(5))); desired != nil {
			t.Errorf("%s: an update is sent", name)
		}
	}
}
