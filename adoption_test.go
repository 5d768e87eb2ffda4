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
	"errors"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/consistency"
)

func TestAdoptionIsCheckedLive(t *testing.T) {
	for name, live := range map[string]*appsv1.Deployment{
		"the annotation was taken off": deployment("a", withoutOwner),
		"another controller has it":    deployment("b", withAdoptBy("a")),
		"it is in deletion":            deployment("a", withoutOwner, withAdoptBy("a"), terminating),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, foo("a", withStatus(settled("a"))), deployment("a", withoutOwner, withAdoptBy("a")))
				f.answerGets(live)
				if err := f.sync(f.ctx, keyOf(foo("a"))); !errors.Is(err, consistency.ErrStale) {
					t.Errorf("the sync ended with %v", err)
				}
				if wrote, _ := f.written(t); wrote != nil {
					t.Errorf("the Deployment was written to: %v", wrote)
				}
			})
		})
	}
}
