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
	"example.com/sample-controller/internal/footest"
)

func TestAdoptionIsCheckedLive(t *testing.T) {
	for name, live := range map[string]*appsv1.Deployment{
		"the annotation was taken off": footest.Deployment("a", footest.WithoutOwner),
		"another controller has it":    footest.Deployment("b", footest.WithAdoptBy("a")),
		"it is in deletion":            footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("a"), footest.Terminating),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithoutOwner, footest.WithAdoptBy("a")))
				f.answerGets(live)
				if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); !errors.Is(err, consistency.ErrStale) {
					t.Errorf("the sync ended with %v", err)
				}
				if wrote, _ := f.written(t); wrote != nil {
					t.Errorf("the Deployment was written to: %v", wrote)
				}
			})
		})
	}
}
