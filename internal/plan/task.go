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

// What a write was made from, to recognize that a retry would send the same.

package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Task is what a write was made from: a Foo, and for Deployments the decision.
type Task struct {
	Foo     *samplev1alpha1.Foo
	Decided Decision
}

// Same reports whether two tasks would send the API server the same. It ignores the
// status of Deployments.
func (t Task) Same(other Task) bool {
	return t.Foo != nil && other.Foo != nil && AsksTheSame(t.Foo, other.Foo) && t.Decided.Action == other.Decided.Action &&
		sameButStatus(t.Decided.Named, other.Decided.Named) &&
		slices.EqualFunc(t.Decided.Obsolete, other.Decided.Obsolete, sameButStatus)
}

// sameButStatus reports whether two states of a Deployment differ in nothing that decides
// over the success of a write. The generation counts changes of the spec and of the
// annotations.
func sameButStatus(a, b *appsv1.Deployment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.Generation == b.Generation && IsTerminating(a) == IsTerminating(b) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
