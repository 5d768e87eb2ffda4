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

// What internal/preview says is what the controller writes.

package main

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/preview"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// FuzzPreview compares a preview with the writes of a sync of the same objects, field by
// field.
func FuzzPreview(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		w := footest.NewFuzzWorld(t, script, noise, words)
		for _, child := range w.Children {
			footest.KindOf(child).Default(child)
		}
		if w.Stale() || w.Refused() {
			t.Skip("a preview is of what the API server has, and of writes that it takes")
		}
		f := newFuzzFixture(t)
		f.store(t, w.Live(), footest.Foo("b"))
		foos, children := f.stored(t)
		f.cacheSees(t, foos, children)
		foo := fooNamed(foos, "a")

		want := preview.Of(preview.Table(footest.DefaultImage), foo, worldOf(children), footest.Now)
		f.takeWrites()
		f.kubeCalls.ClearActions()
		f.fooCalls.ClearActions()
		if err := f.syncHandler(f.ctx, footest.KeyOf(foo)); err != nil {
			t.Fatalf("the sync failed: %v", err)
		}
		checkPreview(t, want, slices.Concat(f.kubeCalls.Actions(), f.fooCalls.Actions()))
	})
}

func worldOf(children []footest.Object) *preview.World {
	world := preview.NewWorld()
	for _, child := range children {
		world.Add(footest.KindOf(child).Resource, child)
	}
	return world
}

// checkPreview fails if the writes of a sync are not those that were announced.
func checkPreview(t *testing.T, announced *preview.Sync, actions []clienttesting.Action) {
	t.Helper()
	var want, got []string
	var sent []runtime.Object
	for _, write := range announced.Writes {
		switch {
		case write.Verb == preview.Adopt:
			want, sent = append(want, "update "+write.Resource.Resource+" "+write.Name), append(sent, write.After)
		case write.Verb.IsWrite():
			want, sent = append(want, string(write.Verb)+" "+write.Resource.Resource+" "+write.Name), append(sent, write.After)
		}
	}
	if announced.ChangesStatus() {
		want, sent = append(want, "update foos "+announced.Foo.Name), append(sent, nil)
	}
	for _, action := range actions {
		if action.GetVerb() == "get" {
			continue
		}
		i, name := len(got), ""
		switch action := action.(type) {
		case clienttesting.DeleteActionImpl:
			name = action.Name
		case clienttesting.CreateActionImpl: // also that of an update
			name = action.Object.(metav1.Object).GetName()
			compareSent(t, announced, sent, i, action.Object)
		case clienttesting.UpdateActionImpl:
			name = action.Object.(metav1.Object).GetName()
			compareSent(t, announced, sent, i, action.Object)
		}
		got = append(got, action.GetVerb()+" "+action.GetResource().Resource+" "+name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the sync wrote %q, the preview announced %q", got, want)
	}
}

func compareSent(t *testing.T, announced *preview.Sync, sent []runtime.Object, i int, object runtime.Object) {
	t.Helper()
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		footest.ExpectEqual(t, "the status", announced.Status, foo.Status)
		return
	}
	if i < len(sent) && sent[i] != nil {
		footest.ExpectEqual(t, "what is sent", sent[i], object)
	}
}
