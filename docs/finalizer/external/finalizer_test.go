// SPDX-License-Identifier: Apache-2.0

// Tests of finalizers.

package external

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	"example.com/sample-controller/test/footest"
)

func withFinalizers(names ...string) footest.FooOption {
	return func(f *foo) { f.Finalizers = names }
}

// TestSetFinalizer also shows that a patch has nothing but the finalizers: an update would
// delete the fields that only a newer CustomResourceDefinition has.
func TestSetFinalizer(t *testing.T) {
	wrote := func(finalizers string) string {
		return `{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"20","uid":"uid-a"}}`
	}
	theirs := footest.Foo("a", withFinalizers("theirs"), func(f *foo) { f.ResourceVersion = "22" })
	for name, row := range map[string]struct {
		cached, live, next *foo // next is what somebody else makes of it after the read
		hold               bool
		patch              string
		want               []string
		reason             metav1.StatusReason
	}{
		"added after those of others":    {footest.Foo("a"), footest.Foo("a", withFinalizers("others")), nil, true, wrote(`["others","ours"]`), []string{"others", "ours"}, ""},
		"added, the first":               {footest.Foo("a"), footest.Foo("a"), nil, true, wrote(`["ours"]`), []string{"ours"}, ""},
		"added already":                  {footest.Foo("a"), footest.Foo("a", withFinalizers("ours")), nil, true, "", []string{"ours"}, ""},
		"removed, others' stay":          {footest.Foo("a"), footest.Foo("a", withFinalizers("x", "ours", "y")), nil, false, wrote(`["x","y"]`), []string{"x", "y"}, ""},
		"removed already":                {footest.Foo("a"), footest.Foo("a", withFinalizers("x")), nil, false, "", []string{"x"}, ""},
		"another object of the name":     {footest.Foo("a"), footest.Foo("a", footest.WithFooUID("next")), nil, true, "", nil, metav1.StatusReasonConflict},
		"being deleted since":            {footest.Foo("a"), footest.Foo("a", footest.BeingDeleted), nil, true, "", []string{"foregroundDeletion"}, metav1.StatusReasonConflict},
		"being deleted, and cached so":   {footest.Foo("a", footest.BeingDeleted), footest.Foo("a", footest.BeingDeleted, withFinalizers("ours")), nil, false, wrote(`[]`), []string{}, ""},
		"somebody adds theirs meanwhile": {footest.Foo("a"), footest.Foo("a"), theirs, true, wrote(`["ours"]`), []string{"theirs"}, metav1.StatusReasonConflict},
		"gone":                           {footest.Foo("a"), nil, nil, true, "", nil, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			client := foofake.NewSimpleClientset()
			if row.live != nil {
				row.live.ResourceVersion = "20" // newer than the cached one
				footest.Must(t, client.Tracker().Add(row.live))
			}
			new(footest.FakeAPI).Serve(t, &client.Fake, client.Tracker())
			client.PrependReactor("get", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
				read, err := client.Tracker().Get(footest.FoosResource, footest.Namespace, "a")
				if row.next != nil {
					footest.Must(t, client.Tracker().Update(footest.FoosResource, row.next, footest.Namespace))
				}
				return true, read, err
			})
			foos := client.SamplecontrollerV1alpha1().Foos(footest.Namespace)
			written, err := SetFinalizer(t.Context(), foos, row.cached, "ours", row.hold, metav1.PatchOptions{FieldManager: "tests"})
			if apierrors.ReasonForError(err) != row.reason || row.reason == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			patch := ""
			for _, action := range client.Actions() {
				if sent, ok := action.(clienttesting.PatchActionImpl); ok {
					patch += string(sent.Patch)
					footest.ExpectEqual(t, "format of the patch", types.MergePatchType, sent.PatchType)
					footest.ExpectEqual(t, "options", metav1.PatchOptions{FieldManager: "tests"}, sent.PatchOptions)
					footest.ExpectEqual(t, "subresource", "", sent.Subresource)
				}
			}
			footest.ExpectEqual(t, "patches", row.patch, patch)
			if stored, getErr := client.Tracker().Get(footest.FoosResource, footest.Namespace, "a"); getErr == nil {
				footest.ExpectEqual(t, "finalizers", row.want, stored.(*foo).Finalizers)
			}
			if err == nil {
				footest.ExpectEqual(t, "finalizers of the result", row.want, written.Finalizers)
			}
		})
	}
}
