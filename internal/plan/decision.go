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
	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// action is what a sync does about the Deployment that a Foo names.
type action string

const (
	// actionNone: the Deployment is as the Foo wants it.
	ActionNone action = "none"
	// actionCreate: there is no Deployment of that name.
	ActionCreate action = "create"
	// actionUpdate: a field that the Foo owns has drifted.
	ActionUpdate action = "update"
	// actionAdopt: the Deployment of that name has no controller, and whoever
	// may edit it has asked for this Foo to become it.
	ActionAdopt action = "adopt"
	// actionLeave: the Deployment of that name is not this Foo's.
	ActionLeave action = "leave"
	// actionWait: the Foo or its Deployment is being deleted; writing now
	// would fight the deletion.
	ActionWait action = "wait"
)

// decision is what a sync will do.
type Decision struct {
	Action action
	// named is the Deployment of the wanted name, whoever controls it, or nil.
	Named *appsv1.Deployment
	// surplus are the Deployments that the Foo controls under other names,
	// left by a change of spec.deploymentName. They go once the wanted one is there.
	Obsolete []*appsv1.Deployment
}

// decide says what a Foo needs, given the Deployment that has the name in its
// spec, or nil, and all Deployments that it controls. It reads only its
// arguments and changes none of them.
func (p Planner) Decide(foo *samplev1alpha1.Foo, named *appsv1.Deployment, controlled []*appsv1.Deployment) Decision {
	decided := Decision{Named: named}
	switch {
	case IsTerminating(foo):
		decided.Action = ActionWait
	case named == nil:
		decided.Action = ActionCreate
	case mayAdopt(named, foo):
		decided.Action = ActionAdopt
	case !IsControlledBy(named, foo):
		decided.Action = ActionLeave
	case IsTerminating(named):
		decided.Action = ActionWait
	case p.hasDrifted(named, foo):
		decided.Action = ActionUpdate
	default:
		decided.Action = ActionNone
	}
	decided.Obsolete = obsoleteAfter(decided.Action, foo, controlled)
	return decided
}

// desiredUpdate returns what to make of a Deployment as it is live; nil if there
// is nothing to update, so that the cache is behind.
func (p Planner) DesiredUpdate(live *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	switch p.Decide(foo, live, nil).Action {
	case ActionUpdate:
		return p.repairedDeployment(live, foo)
	case ActionAdopt:
		return p.adoptedDeployment(live, foo)
	default:
		return nil
	}
}

// surplusOf returns the Deployments to remove after an action. While the
// wanted one can't be had, the old one goes on serving.
func obsoleteAfter(act action, foo *samplev1alpha1.Foo, controlled []*appsv1.Deployment) []*appsv1.Deployment {
	if act == ActionWait || act == ActionLeave {
		return nil
	}
	var surplus []*appsv1.Deployment
	for _, deployment := range controlled {
		if IsObsolete(deployment, foo) {
			surplus = append(surplus, deployment)
		}
	}
	return surplus
}

// isSurplus tells whether a Deployment is a Foo's, under a name that the Foo
// does not ask for, and not on its way out yet.
func IsObsolete(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	return IsControlledBy(deployment, foo) && deployment.Name != foo.Spec.DeploymentName && !IsTerminating(deployment)
}
