// SPDX-License-Identifier: Apache-2.0

// Tests of finalizers.

package external

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// fakeClient is a client of one Foo.
type fakeClient struct {
	t          *testing.T
	live, next *foo // next replaces it after the read
	patch      string
}

func (c *fakeClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*foo, error) {
	if c.live == nil {
		return nil, apierrors.NewNotFound(footest.FoosResource.GroupResource(), name)
	}
	read := c.live.DeepCopy()
	if c.next != nil {
		c.live = c.next
	}
	return read, nil
}

func (c *fakeClient) Patch(_ context.Context, _ string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*foo, error) {
	footest.ExpectEqual(c.t, "format of the patch", types.MergePatchType, format)
	footest.ExpectEqual(c.t, "options", metav1.PatchOptions{FieldManager: "tests"}, options)
	footest.ExpectEqual(c.t, "subresources", []string(nil), subresources)
	c.patch += string(patch)
	sent, err := rows.Patched(c.live, format, patch)
	footest.Must(c.t, err)
	change, err := footest.FooKind.Update(c.live, sent, "")
	if err != nil {
		return nil, err
	}
	c.live = change.Answer.(*foo)
	return c.live.DeepCopy(), nil
}

func withFinalizers(names ...string) footest.FooOption {
	return func(f *foo) { f.Finalizers = names }
}

// TestSetFinalizer also checks that a patch contains only the finalizers: an update would delete
// the fields that only a newer CustomResourceDefinition has.
func TestSetFinalizer(t *testing.T) {
	wrote := func(finalizers string) string {
		return `{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"20","uid":"uid-a"}}`
	}
	theirs := footest.Foo("a", withFinalizers("theirs"), func(f *foo) { f.ResourceVersion = "22" })
	for name, row := range map[string]struct {
		cached, live, next *foo
		hold               bool
		patch              string
		want               []string
		reason             metav1.StatusReason
	}{
		"added after others' finalizers": {footest.Foo("a"), footest.Foo("a", withFinalizers("others")), nil, true, wrote(`["others","ours"]`), []string{"others", "ours"}, ""},
		"added, the first":               {footest.Foo("a"), footest.Foo("a"), nil, true, wrote(`["ours"]`), []string{"ours"}, ""},
		"added already":                  {footest.Foo("a"), footest.Foo("a", withFinalizers("ours")), nil, true, "", []string{"ours"}, ""},
		"removed, others' stay":          {footest.Foo("a"), footest.Foo("a", withFinalizers("x", "ours", "y")), nil, false, wrote(`["x","y"]`), []string{"x", "y"}, ""},
		"removed already":                {footest.Foo("a"), footest.Foo("a", withFinalizers("x")), nil, false, "", []string{"x"}, ""},
		"another object of the name":     {footest.Foo("a"), footest.Foo("a", footest.WithFooUID("next")), nil, true, "", nil, metav1.StatusReasonConflict},
		"being deleted since":            {footest.Foo("a"), footest.Foo("a", footest.BeingDeleted), nil, true, "", []string{"foregroundDeletion"}, metav1.StatusReasonConflict},
		"being deleted, and cached so":   {footest.Foo("a", footest.BeingDeleted), footest.Foo("a", footest.BeingDeleted, withFinalizers("ours")), nil, false, wrote(`[]`), []string{}, ""},
		"someone adds theirs meanwhile":  {footest.Foo("a"), footest.Foo("a"), theirs, true, wrote(`["ours"]`), []string{"theirs"}, metav1.StatusReasonConflict},
		"gone":                           {footest.Foo("a"), nil, nil, true, "", nil, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if row.live != nil {
				row.live.ResourceVersion = "20" // newer than the cached one
			}
			client := &fakeClient{t: t, live: row.live, next: row.next}
			written, err := SetFinalizer(t.Context(), client, row.cached, "ours", row.hold, metav1.PatchOptions{FieldManager: "tests"})
			if apierrors.ReasonForError(err) != row.reason || row.reason == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			footest.ExpectEqual(t, "patches", row.patch, client.patch)
			if client.live != nil {
				footest.ExpectEqual(t, "finalizers", row.want, client.live.Finalizers)
			}
			if err == nil {
				footest.ExpectEqual(t, "finalizers of the result", row.want, written.Finalizers)
			}
		})
	}
}
