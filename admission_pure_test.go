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
)

func TestARulingIsOnTheseTwoObjects(t *testing.T) {
	o := &overruled{}
	mirrored := deployment("a", withImage("mirror.example.com/nginx:latest"))
	o.learn(foo("a"), mirrored, "the image")
	if !o.stands(foo("a"), mirrored, "the image") {
		t.Error("what the API server made of a Deployment is not remembered")
	}
	again := foo("a", withFooUID("uid-new"))
	if o.stands(again, mirrored, "the image") {
		t.Error("the ruling stands for another Foo of the name")
	}
	o.learn(foo("a"), deployment("a"), "")
	if o.stands(foo("a"), mirrored, "the image") {
		t.Error("the ruling stands after a write that was stored as sent")
	}
	o.learn(foo("a"), mirrored, "the image")
	o.forget(keyOf(foo("a")))
	if o.count() != 0 {
		t.Error("a Foo that is gone is remembered")
	}
}
