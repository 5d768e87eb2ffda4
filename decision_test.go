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
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named *appsv1.Deployment
		want  action
	}{
		"no Deployment":          {foo("a"), nil, actionCreate},
		"as wanted":              {foo("a"), deployment("a"), actionNone},
		"drifted":                {foo("a", withReplicas(5)), deployment("a"), actionUpdate},
		"another's":              {foo("a"), deployment("b"), actionLeave},
		"nobody's":               {foo("a"), deployment("a", withoutOwner), actionLeave},
		"an earlier Foo's":       {foo("a", withFooUID("uid-new")), deployment("a"), actionLeave},
		"another's, in deletion": {foo("a"), deployment("b", terminating), actionLeave},
		"drifted, in deletion":   {foo("a", withReplicas(5)), deployment("a", terminating), actionWait},
		"no Deployment, but the Foo is in deletion": {foo("a", beingDeleted), nil, actionWait},
		"drifted, but the Foo is in deletion":       {foo("a", beingDeleted, withReplicas(5)), deployment("a"), actionWait},
		"another's, and the Foo is in deletion":     {foo("a", beingDeleted), deployment("b"), actionWait},
	} {
		t.Run(name, func(t *testing.T) {
			decided := decide(row.foo, row.named)
			if decided.action != row.want {
				t.Errorf("decided to %s, not to %s", decided.action, row.want)
			}
			if writes := decided.write != nil; writes != (row.want == actionCreate || row.want == actionUpdate) {
				t.Errorf("a decision to %s has something to write: %v", row.want, writes)
			}
			if decided.found != nil && !isControlledBy(decided.found, row.foo) {
				t.Error("the decision speaks of a Deployment that is not the Foo's")
			}
		})
	}
}

func TestUpdateKeepsTheResourceVersion(t *testing.T) {
	decided := decide(foo("a", withReplicas(5)), deployment("a", atVersion("77")))
	if decided.write.ResourceVersion != "77" {
		t.Errorf("the update is sent with resourceVersion %q, so that it would overwrite a newer state", decided.write.ResourceVersion)
	}
}
