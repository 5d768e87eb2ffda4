// SPDX-License-Identifier: Apache-2.0

// Tests of finalizers.

package external

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/test/footest"
)

// fakeClient is a client of one Foo.
type fakeClient struct {
	t       *testing.T
	live    *foo // nil if the Foo is gone
	patches []string
	// meanwhile is what somebody else does after a read.
	meanwhile func(c *fakeClient)
}

func (c *fakeClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*foo, error) {
	live, err := c.answer(name)
	if c.meanwhile != nil {
		c.meanwhile(c)
	}
	return live, err
}

// Patch carries out a merge patch of the finalizers if its preconditions hold.
func (c *fakeClient) Patch(_ context.Context, name string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*foo, error) {
	footest.ExpectEqual(c.t, "format of the patch", types.MergePatchType, format)
	footest.ExpectEqual(c.t, "options", metav1.PatchOptions{FieldManager: "tests"}, options)
	footest.ExpectEqual(c.t, "subresources", []string(nil), subresources)
	c.patches = append(c.patches, string(patch))
	if c.live == nil {
		return c.answer(name)
	}
	var sent metav1.PartialObjectMetadata
	footest.Must(c.t, json.Unmarshal(patch, &sent))
	if sent.UID != c.live.UID || sent.ResourceVersion != c.live.ResourceVersion {
		return nil, apierrors.NewConflict(footest.FoosResource.GroupResource(), name, nil)
	}
	c.live.Finalizers, c.live.ResourceVersion = sent.Finalizers, "21"
	return c.answer(name)
}

// answer returns what is stored.
func (c *fakeClient) answer(name string) (*foo, error) {
	if c.live == nil {
		return nil, apierrors.NewNotFound(footest.FoosResource.GroupResource(), name)
	}
	return c.live.DeepCopy(), nil
}

func withFinalizers(names ...string) footest.FooOption {
	return func(f *foo) { f.Finalizers = names }
}

// addTheirs adds somebody else's finalizer.
func addTheirs(c *fakeClient) {
	c.live.ResourceVersion, c.live.Finalizers = "22", []string{"theirs"}
}

// TestSetFinalizer also shows that a patch has nothing but the finalizers: an update would
// delete the fields that only a newer CustomResourceDefinition has.
func TestSetFinalizer(t *testing.T) {
	wrote := func(finalizers string) []string {
		return []string{`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"20","uid":"uid-a"}}`}
	}
	for name, row := range map[string]struct {
		cached, live *foo
		meanwhile    func(*fakeClient)
		hold         bool
		patches      []string
		want         []string
		reason       metav1.StatusReason
	}{
		"added after those of others":    {footest.Foo("a"), footest.Foo("a", withFinalizers("others")), nil, true, wrote(`["others","ours"]`), []string{"others", "ours"}, ""},
		"added, the first":               {footest.Foo("a"), footest.Foo("a"), nil, true, wrote(`["ours"]`), []string{"ours"}, ""},
		"added already":                  {footest.Foo("a"), footest.Foo("a", withFinalizers("ours")), nil, true, nil, []string{"ours"}, ""},
		"removed, others' stay":          {footest.Foo("a"), footest.Foo("a", withFinalizers("x", "ours", "y")), nil, false, wrote(`["x","y"]`), []string{"x", "y"}, ""},
		"removed already":                {footest.Foo("a"), footest.Foo("a", withFinalizers("x")), nil, false, nil, []string{"x"}, ""},
		"another object of the name":     {footest.Foo("a"), footest.Foo("a", footest.WithFooUID("next")), nil, true, nil, nil, metav1.StatusReasonConflict},
		"being deleted since":            {footest.Foo("a"), footest.Foo("a", footest.BeingDeleted), nil, true, nil, []string{"foregroundDeletion"}, metav1.StatusReasonConflict},
		"being deleted, and cached so":   {footest.Foo("a", footest.BeingDeleted), footest.Foo("a", footest.BeingDeleted, withFinalizers("ours")), nil, false, wrote(`[]`), []string{}, ""},
		"somebody adds theirs meanwhile": {footest.Foo("a"), footest.Foo("a"), addTheirs, true, wrote(`["ours"]`), []string{"theirs"}, metav1.StatusReasonConflict},
		"gone":                           {footest.Foo("a"), nil, nil, true, nil, nil, metav1.StatusReasonNotFound},
		"gone meanwhile":                 {footest.Foo("a"), footest.Foo("a"), func(c *fakeClient) { c.live = nil }, true, wrote(`["ours"]`), nil, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			client := &fakeClient{t: t, live: row.live, meanwhile: row.meanwhile}
			if row.live != nil {
				row.live.ResourceVersion = "20" // newer than the cached one
			}
			written, err := SetFinalizer(t.Context(), client, row.cached, "ours", row.hold, metav1.PatchOptions{FieldManager: "tests"})
			if apierrors.ReasonForError(err) != row.reason || row.reason == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			footest.ExpectEqual(t, "patches", row.patches, client.patches)
			if client.live == nil {
				return
			}
			footest.ExpectEqual(t, "finalizers", row.want, client.live.Finalizers)
			if err == nil {
				footest.ExpectEqual(t, "the result", client.live, written)
			}
		})
	}
}
