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
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// action is what a sync does about the Deployment that a Foo names.
type action string

const (
	// actionNone: the Deployment is as the Foo wants it.
	actionNone action = "none"
	// actionCreate: there is no Deployment of that name.
	actionCreate action = "create"
	// actionUpdate: a field that the Foo owns has drifted.
	actionUpdate action = "update"
	// actionLeave: the Deployment of that name is not this Foo's.
	actionLeave action = "leave"
	// actionWait: the Foo or its Deployment is being deleted; writing now
	// would fight the deletion.
	actionWait action = "wait"
)

// decision is what a sync will do.
type decision struct {
	action action
	// found is the Deployment of the wanted name, if the Foo controls it.
	found *appsv1.Deployment
	// write is what to create or update; nil for the other actions.
	write *appsv1.Deployment
}

// decide says what a Foo needs, given the Deployment that has the name in its
// spec, or nil. It reads only its arguments and changes none of them.
func decide(foo *samplev1alpha1.Foo, named *appsv1.Deployment) decision {
	if named != nil && !isControlledBy(named, foo) {
		return decideForeign(foo)
	}
	switch {
	case isTerminating(foo), named != nil && isTerminating(named):
		return decision{action: actionWait, found: named}
	case named == nil:
		return decision{action: actionCreate, write: newDeployment(foo)}
	}
	if repaired, drifted := repairedDeployment(named, foo); drifted {
		return decision{action: actionUpdate, found: named, write: repaired}
	}
	return decision{action: actionNone, found: named}
}

// decideForeign says what to do where the name is taken by a Deployment that
// the Foo does not control.
func decideForeign(foo *samplev1alpha1.Foo) decision {
	if isTerminating(foo) {
		return decision{action: actionWait}
	}
	return decision{action: actionLeave}
}

func isTerminating(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil
}
