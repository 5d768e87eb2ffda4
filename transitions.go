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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// transitions remembers the last change of a Foo's readiness that was sent, until
// the cache shows what became of it. The answer of a status write can be lost:
// if it was stored all the same, its event is recorded then. One event tells of
// each transition, unless the controller dies between the two.
type transitions struct {
	memory[transition]
}

// transition is a status write that changes a Foo's readiness.
type transition struct {
	// from is the resourceVersion of the Foo that the write was made from. The
	// API server stores one such write at most.
	from string
	// ready is the condition that was sent; nil once it has its event.
	ready *metav1.Condition
}

// stored takes note of a write that was answered: it has its event.
func (t *transitions) stored(foo *samplev1alpha1.Foo) {
	t.remember(cache.MetaObjectToName(foo), transition{from: foo.ResourceVersion})
}

// unknown takes note of a write of which nobody knows whether it was stored.
func (t *transitions) unknown(foo *samplev1alpha1.Foo, ready metav1.Condition) {
	key := cache.MetaObjectToName(foo)
	if known, ok := t.recall(key); ok && known.from == foo.ResourceVersion && known.ready == nil {
		return // another from the same version was stored, so this one was not
	}
	t.remember(key, transition{foo.ResourceVersion, &ready})
}

// missed returns the condition Ready of a cached Foo if there is no event of it
// yet, else nil.
func (t *transitions) missed(foo *samplev1alpha1.Foo) *metav1.Condition {
	key := cache.MetaObjectToName(foo)
	known, ok := t.recall(key)
	if !ok || known.from == foo.ResourceVersion {
		return nil // the cache does not show it yet
	}
	t.forget(key)
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if known.ready == nil || ready == nil || ready.Status != known.ready.Status || ready.Reason != known.ready.Reason ||
		ready.ObservedGeneration != known.ready.ObservedGeneration {
		return nil
	}
	return ready
}
