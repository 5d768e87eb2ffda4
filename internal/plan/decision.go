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

// Package plan decides what a Foo needs: which action, which Deployment, which status,
// and what the caches have to keep for that. Its functions are pure: no client, no clock,
// no context; they change none of their arguments.
package plan

import (
	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Action is what a sync does about the Deployment that a Foo names.
type Action string

const (
	// ActionNone means that the Deployment is as the Foo asks.
	ActionNone Action = "none"
	// ActionCreate means that no Deployment has the name.
	ActionCreate Action = "create"
	// ActionUpdate means that a field that the Foo owns has drifted.
	ActionUpdate Action = "update"
	// ActionAdopt means that the Deployment of the name has no controller, and somebody
	// who may edit it asks the Foo to become its controller.
	ActionAdopt Action = "adopt"
	// ActionLeave means that the Deployment of the name belongs to somebody else.
	ActionLeave Action = "leave"
	// ActionWait means that the Foo or its Deployment is being deleted, and a write would
	// work against that.
	ActionWait Action = "wait"
)

// Decision is what a sync is going to do.
type Decision struct {
	Action Action
	// Named is the Deployment of the name that the Foo asks for, whoever controls it, or
	// nil.
	Named *appsv1.Deployment
	// Obsolete are the Deployments that the Foo controls under other names, after a
	// change of spec.deploymentName. They are deleted once the one of the new name
	// exists.
	Obsolete []*appsv1.Deployment
}

// Decide decides what a Foo needs. named is the Deployment of the name in its spec, or
// nil, and controlled are all Deployments that it controls.
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

// DesiredUpdate returns the Deployment that an update should store in place of the live
// one, or nil if the live one needs no update, so that the cache was stale.
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

// obsoleteAfter returns the Deployments to delete after an action. As long as the Foo
// can't have the Deployment that it asks for, the old one stays in service.
func obsoleteAfter(act Action, foo *samplev1alpha1.Foo, controlled []*appsv1.Deployment) []*appsv1.Deployment {
	if act == ActionWait || act == ActionLeave {
		return nil
	}
	var obsolete []*appsv1.Deployment
	for _, deployment := range controlled {
		if IsObsolete(deployment, foo) {
			obsolete = append(obsolete, deployment)
		}
	}
	return obsolete
}

// IsObsolete reports whether a Foo controls a Deployment under a name that it does not
// ask for. One that is being deleted already is not obsolete.
func IsObsolete(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	return IsControlledBy(deployment, foo) && deployment.Name != foo.Spec.DeploymentName && !IsTerminating(deployment)
}
